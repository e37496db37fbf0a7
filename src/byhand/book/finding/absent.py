"""Techniques of other models that this one lacks: a description of each, and of what the model does instead.

When the model learns one of them, delete its lines here; the equation's entry answers from then on.
"""

from __future__ import annotations

from byhand.book.finding.finding import Finding, split
from byhand.book.words.language import Words
from byhand.book.words.tables import rows

# name | English | Chinese | answers about its replacement
#     a description, in English; in Chinese; what the model does instead, in English; in Chinese
#     names in other programs and questions, on one or more lines
TABLE = """
dropout | Dropout | 随机失活（dropout） | weight_decay, evaluate
    Sets random activations to 0 in training.
    训练时随机把一部分激活值置为 0。
    Weight decay regularises; the validation loss shows overfitting.
    用权重衰减做正则化，用验证损失观察过拟合。
    nn.Dropout, F.dropout, attn_pdrop, resid_pdrop, embd_pdrop, attn_dropout, attention dropout, resid_dropout,
    丢弃法, 丢弃, 失活
# Positions
sinusoidal | Sinusoidal positions | 正弦位置编码 | add_positional, rotary
    Sines and cosines of fixed frequencies are added to the embedding.
    把固定频率的正弦和余弦加到词元嵌入上。
    The vectors of the positions are learned; rotary positions turn queries and keys by such sines and cosines.
    位置向量由训练得到；旋转位置编码用这样的正弦和余弦旋转查询与键。
    sinusoidal positional encoding, sin cos positions, sine and cosine, 正弦余弦位置编码, 三角函数位置编码
alibi | ALiBi and relative positions | ALiBi 与相对位置 | rotary, add_positional, attention_scores
    A bias on the scores that depends on the distance of two positions.
    按两个位置的距离给分数加偏置。
    Rotary positions make scores depend on the distance; a learned vector for each position does not.
    旋转位置编码使分数取决于距离；可学习的位置向量表示绝对位置。
    ALiBi, relative position bias, relative positional encoding, T5 bias, 相对位置编码, 相对位置
# Layers
batch_norm | Batch normalization | 批归一化 | layer_norm
    Normalises each column over the batch.
    对每一列在整个批次上归一化。
    LayerNorm normalises each position alone, over its columns.
    层归一化对每个位置的各列归一化，位置之间互不影响。
    BatchNorm, nn.BatchNorm1d, batch norm, group norm, 批量归一化, 批标准化, 批归一化的区别
moe | Mixture of experts | 混合专家（MoE） | mlp
    A router sends each token to a few of many MLPs.
    路由器把每个词元送到多个前馈网络中的几个。
    Every token passes through the one MLP of each block.
    每个词元都经过每个块中唯一的前馈网络。
    MoE, experts, router, gating network, Mixtral, 专家模型, 路由
rnn | Convolution and recurrence | 卷积与循环网络 | causal_self_attention, mix
    Other ways to mix positions: windows, or a state.
    混合各位置的其他办法：窗口，或逐步更新的状态。
    Only attention mixes positions.
    只有注意力混合不同的位置。
    RNN, LSTM, GRU, Mamba, state space model, convolution, nn.Conv1d, CNN, 循环神经网络, 卷积, 卷积神经网络
# Attention
mla | Multi-head latent attention (MLA) | 多头潜在注意力（MLA） | repeat_heads, n_kv_heads, kv_cache
    Keeps a short vector for each position, from which keys and values are projected.
    每个位置只存一个短向量，再由它投影出键和值。
    Grouped queries make the cache smaller: --n-kv-heads.
    用分组查询缩小缓存：--n-kv-heads。
    MLA, latent attention, kv_lora_rank, compressed KV, 潜在注意力, 多头潜在注意力, 低秩键值压缩
flash_attention | Flash attention | Flash Attention | causal_self_attention, runtime
    Computes attention in tiles without writing the scores to memory.
    分块计算注意力，不把分数写入内存。
    The equations write the scores out; the loops runtime fuses scores, softmax and sum in one kernel.
    公式会写出分数；loops 运行时把分数、softmax 和加权求和融合在一个内核中。
    flash_attn, FlashAttention, FlashAttention-2, memory-efficient attention, xformers, PagedAttention, 闪存注意力
sparse_attention | Sparse and linear attention | 稀疏注意力与线性注意力 | window_softmax, causal_softmax
    Each position sees a chosen pattern of earlier ones, or a running sum of them.
    每个位置只看按某种模式选出的部分位置，或看之前各位置的累积和。
    Each position sees all earlier ones, or the last ones: --attention-window.
    每个位置能看到之前的全部位置，或只看最近的若干个：--attention-window。
    sparse attention, Longformer, BigBird, linear attention, Performer, dilated attention, attention sink, 稀疏注意力,
    线性注意力
cross_attention | Encoder and cross-attention | 编码器与交叉注意力 | causal_self_attention, forward_logits, causal
    Queries of one sequence attend to another sequence.
    一个序列的查询去看另一个序列。
    A decoder alone: a sequence attends to itself.
    只有解码器：序列只看自己。
    cross-attention, encoder, encoder-decoder, seq2seq, BERT, T5, 交叉注意力, 编码器, 编码器解码器
padding | Padding | 填充（padding） | sample_batch
    Fills short texts up to one length and masks the rest.
    把短文本补到同一长度，再用掩码遮住。
    Every window is a full piece of a long text.
    每个窗口都是长文本中完整的一段。
    pad_token, pad_token_id, padding mask, key_padding_mask, ignore_index, 填充掩码, 补齐, 填充
other_tokenizers | WordPiece, Unigram | WordPiece、Unigram | bpe, bpe_training
    Other ways to choose a vocabulary: by likelihood.
    选择词表的其他方法：按似然。
    Bytes are the tokens, or byte-pair encoding.
    以字节为词元，或用字节对编码。
    wordpiece vocabulary, unigram tokenizer
# PyTorch
einsum | einsum | 爱因斯坦求和（einsum） | matmul, reshape, transpose
    Products and sums written by indices.
    用下标书写的乘积与求和。
    Products of matrices, with reshape and transpose.
    矩阵乘法，配合重塑与转置。
    torch.einsum, np.einsum, einops, rearrange, Einstein summation, 爱因斯坦求和约定
loss_scaling | Loss scaling (GradScaler) | 损失缩放（GradScaler） | dtype
    Multiplies the loss so that float16 gradients do not vanish.
    放大损失，使 float16 的梯度不至于变成 0。
    bfloat16 has the range of float32, so nothing is scaled.
    bfloat16 的范围与 float32 相同，无需缩放。
    GradScaler, loss scale, float16, fp16, 损失放大
# Learning
other_schedules | Other schedules | 其他学习率调度 | learning_rate, schedule
    Steps, exponentials, restarts, or a plateau detector.
    阶梯、指数、重启，或按平台期调整。
    A linear warm-up, then a cosine, a constant or a straight line down (--schedule, --cooldown).
    线性预热，之后按余弦下降、保持不变或直线下降（--schedule、--cooldown）。
    StepLR, MultiStepLR, ExponentialLR, ReduceLROnPlateau, OneCycleLR, CosineAnnealingWarmRestarts,
    polynomial decay, cyclic learning rate, 阶梯学习率, 指数衰减, 余弦重启
other_optimizers | Other optimizers | 其他优化器 | adamw, muon, optimizer_step
    Other rules that turn gradients into new weights.
    由梯度得到新权重的其他规则。
    Those that --optimizer offers.
    可选的见 --optimizer。
    RMSprop, Adagrad, Adafactor, Lion, Shampoo, SOAP, LAMB, torch.optim.SGD, 随机梯度下降
early_stopping | Early stopping | 早停 | steps, eval_interval, evaluate
    Ends training when the validation loss no longer falls.
    验证损失不再下降时结束训练。
    Training runs for --steps updates and prints the validation loss on the way.
    训练固定更新 --steps 次，途中输出验证损失。
    EarlyStopping, patience, stop early, 提前停止, 早停法
label_smoothing | Label smoothing | 标签平滑 | cross_entropy
    Moves some of the target's probability to the other tokens.
    把目标的一部分概率分给其他词元。
    The target has probability 1: the loss is −log p of the target.
    目标的概率为 1：损失是目标的 −log p。
    label_smoothing, smooth labels, z-loss, auxiliary loss, 平滑标签
other_losses | Other losses | 其他损失 | cross_entropy
    Compare numbers or pairs instead of a distribution with a token.
    比较数值或成对的样本，而不是比较预测的分布与目标词元。
    Cross-entropy is the only loss.
    损失只有交叉熵。
    mean squared error, MSE, nn.MSELoss, L1 loss, KL divergence, focal loss, contrastive loss, hinge loss, 均方误差,
    KL 散度, 对比损失
weight_averaging | Averages of checkpoints (SWA) | 检查点平均（SWA） | ema, evaluate
    Averages the weights of some checkpoints, each alike.
    对若干检查点的权重取等权平均。
    A moving average of the weights goes along with training (--ema).
    训练时同步保存权重的滑动平均（--ema）。
    SWA, stochastic weight averaging, model soup, checkpoint averaging, 随机权重平均
fine_tuning | Training by rewards or preferences | 用奖励或偏好训练 | train, tune, lora
    Rewards or pairs of answers for a trained model.
    用奖励或成对的回答继续训练已有模型。
    All weights, or low-rank adapters (--lora), learn to predict the next token, of texts or of answers (--chat).
    全部权重或低秩适配器（--lora）都为预测下一词元而训练，可以是普通文本，也可以只是对话中的回答（--chat）。
    QLoRA, RLHF, PPO, DPO, GRPO, 强化学习, 对齐
# Generation
beam_search | Beam search | 束搜索 | generate, temperature, top_k
    Keeps the best few continuations at each step.
    每一步保留最好的几个续写。
    One token is drawn at a time: by temperature, top-k, top-p and min-p, or the likeliest at temperature 0.
    每次只抽一个词元：按温度、top-k、top-p、min-p 抽样，温度为 0 时取最可能的。
    num_beams, BeamSearchScorer, contrastive search, 集束搜索, 束宽
other_penalties | Other penalties and cuts | 其他惩罚与截断 | repetition_penalty, min_p, top_p
    Subtract from logits by count, forbid phrases that were already written, or cut by other measures.
    按出现次数减小 logits、禁止已经出现过的短语，或按其他标准截断。
    The repetition penalty is a factor, the same however often a token occurred; cuts are top-k, top-p and min-p.
    重复惩罚是一个系数，与出现次数无关；截断有 top-k、top-p 和 min-p。
    frequency_penalty, presence_penalty, no_repeat_ngram_size, typical_p, logit_bias, top_n_sigma, mirostat, XTC, DRY,
    频率惩罚, 存在惩罚
speculative_decoding | Speculative decoding | 推测解码 | generate, kv_cache
    A small model proposes tokens that a large one checks.
    小模型提议词元，大模型检查。
    Every token comes from the one model, with a KV cache.
    每个词元都由同一个模型生成，使用键值缓存。
    assisted generation, draft model, Medusa, continuous batching, 投机解码, 投机采样
quantization | Quantisation | 量化 | quantise, dtype, generate
    Stores weights, or the KV cache, as integers of few bits.
    用位数很少的整数存放权重或键值缓存。
    A GGUF can be exported quantised; generation here reads weights as float32 or bfloat16.
    可以导出量化的 GGUF；这里生成文本时按 float32 或 bfloat16 读取权重。
    quantization, int8, int4, GPTQ, AWQ, bitsandbytes, load_in_8bit, KV-cache quantisation, quantized KV cache,
    distillation, pruning, 量化, KV 缓存量化, KV cache 量化, 蒸馏, 剪枝
"""


def _absent(head: str, en: str, zh: str, instead_en: str, instead_zh: str, *asked: str) -> Finding:
    name, title_en, title_zh, see = head.split(" | ")
    return Finding(
        name=name,
        title=Words(title_en, title_zh),
        kind="absent",
        asked=split(" ".join(asked)),
        says=(Words(en, zh), Words(instead_en, instead_zh)),
        see=split(see),
    )


ABSENT = tuple(_absent(*lines) for _, lines in rows(TABLE))
