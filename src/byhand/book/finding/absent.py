"""What readers know from other models and this one does not have: what it is, and what stands in its place.

When the model learns one of them, delete its item here; the equation's entry answers from then on.
"""

from __future__ import annotations

from dataclasses import dataclass

from byhand.book.words.language import Words


@dataclass(frozen=True)
class Absent(Words):
    """A technique that this model lacks.

    what      one line that says what it is
    instead   one line that says what the model does; `see` are the answers that show it
    asked     names in other programs and questions, separated by commas
    """

    name: str
    what: Words
    instead: Words
    see: tuple[str, ...]
    asked: str = ""


ABSENT = (
    Absent(
        "Dropout",
        "随机失活（dropout）",
        "dropout",
        Words("Sets random activations to 0 in training.", "训练时随机把一部分激活值置为 0。"),
        Words(
            "Weight decay regularises; the validation loss shows overfitting.",
            "用权重衰减做正则化，用验证损失观察过拟合。",
        ),
        ("weight_decay", "evaluate"),
        "nn.Dropout, F.dropout, attn_pdrop, resid_pdrop, embd_pdrop, attn_dropout, resid_dropout, 丢弃法, 丢弃, 失活",
    ),
    # Positions
    Absent(
        "Rotary position embedding (RoPE)",
        "旋转位置编码（RoPE）",
        "rope",
        Words("Rotates queries and keys by an angle that grows with the position.", "按位置把查询和键旋转一个角度。"),
        Words(
            "A learned vector for each position is added to the embedding.", "把每个位置的可学习向量加到词元嵌入上。"
        ),
        ("add_positional",),
        "RoPE, rotary, rotary embedding, rotary_emb, rope_theta, apply_rotary_pos_emb, 旋转位置嵌入, 旋转编码",
    ),
    Absent(
        "Sinusoidal positions",
        "正弦位置编码",
        "sinusoidal",
        Words("Sines and cosines of fixed frequencies mark the position.", "用固定频率的正弦和余弦表示位置。"),
        Words("The vectors of the positions are learned.", "位置向量由训练得到。"),
        ("add_positional",),
        "sinusoidal positional encoding, sin cos positions, sine and cosine, 正弦余弦位置编码, 三角函数位置编码",
    ),
    Absent(
        "ALiBi and relative positions",
        "ALiBi 与相对位置",
        "alibi",
        Words(
            "A bias on the scores that depends on the distance of two positions.", "按两个位置的距离给分数加偏置。"
        ),
        Words("Positions are absolute: a learned vector for each.", "使用绝对位置：每个位置一个可学习的向量。"),
        ("add_positional", "attention_scores"),
        "ALiBi, relative position bias, relative positional encoding, T5 bias, 相对位置编码, 相对位置",
    ),
    # Layers
    Absent(
        "RMSNorm",
        "RMSNorm（均方根归一化）",
        "rms_norm",
        Words("Divides by the root mean square and subtracts no mean.", "除以均方根，不减均值。"),
        Words(
            "LayerNorm subtracts the mean, then divides by the standard deviation.",
            "层归一化先减均值，再除以标准差。",
        ),
        ("layer_norm",),
        "RMSNorm, root mean square norm, LlamaRMSNorm, nn.RMSNorm, 均方根归一化, 均方根层归一化",
    ),
    Absent(
        "Batch normalization",
        "批归一化",
        "batch_norm",
        Words("Normalises each column over the batch.", "对每一列在整个批次上归一化。"),
        Words("LayerNorm normalises each position alone, over its columns.", "层归一化对每个位置单独按列归一化。"),
        ("layer_norm",),
        "BatchNorm, nn.BatchNorm1d, batch norm, group norm, 批量归一化, 批标准化, 批归一化的区别",
    ),
    Absent(
        "SwiGLU and gated MLPs",
        "SwiGLU 与门控前馈网络",
        "swiglu",
        Words("Multiplies one projection by the activation of another.", "把一个投影乘以另一个投影的激活值。"),
        Words(
            "The MLP has two linear layers with GELU or ReLU between.", "前馈网络是两个线性层，中间为 GELU 或 ReLU。"
        ),
        ("mlp", "gelu", "activation"),
        "SwiGLU, GLU, GEGLU, SiLU, F.silu, Swish, gate_proj, gated linear unit, LlamaMLP, 门控, 门控线性单元",
    ),
    Absent(
        "Mixture of experts",
        "混合专家（MoE）",
        "moe",
        Words("A router sends each token to a few of many MLPs.", "路由器把每个词元送到多个前馈网络中的几个。"),
        Words("Every token passes through the one MLP of each block.", "每个词元都经过每个块中唯一的前馈网络。"),
        ("mlp",),
        "MoE, experts, router, gating network, Mixtral, 专家模型, 路由",
    ),
    Absent(
        "Convolution and recurrence",
        "卷积与循环网络",
        "rnn",
        Words("Other ways to mix positions: windows, or a state.", "混合各位置的其他办法：窗口，或逐步更新的状态。"),
        Words("Only attention mixes positions.", "只有注意力混合不同的位置。"),
        ("causal_self_attention", "mix"),
        "RNN, LSTM, GRU, Mamba, state space model, convolution, nn.Conv1d, CNN, 循环神经网络, 卷积, 卷积神经网络",
    ),
    # Attention
    Absent(
        "Grouped-query attention (GQA, MQA)",
        "分组查询注意力（GQA、MQA）",
        "gqa",
        Words("Several query heads share one head of keys and values.", "多个查询头共用一个键值头。"),
        Words("Each head has its own queries, keys and values.", "每个头都有自己的查询、键和值。"),
        ("split_qkv", "n_heads"),
        "GQA, MQA, grouped-query attention, grouped query attention, multi-query attention, num_key_value_heads, "
        "n_kv_heads, repeat_kv, MLA, latent attention, 分组查询注意力, 多查询注意力",
    ),
    Absent(
        "Flash attention",
        "Flash Attention",
        "flash_attention",
        Words(
            "Computes attention in tiles without writing the scores to memory.",
            "分块计算注意力，不把分数写入内存。",
        ),
        Words(
            "The equations write the scores out; the loops runtime fuses scores, softmax and sum in one kernel.",
            "公式会写出分数；loops 运行时把分数、softmax 和加权求和融合在一个内核中。",
        ),
        ("causal_self_attention", "runtime"),
        "flash_attn, FlashAttention, FlashAttention-2, memory-efficient attention, xformers, PagedAttention, "
        "闪存注意力",
    ),
    Absent(
        "Sliding-window and sparse attention",
        "滑动窗口与稀疏注意力",
        "sparse_attention",
        Words("Each position sees only some of the earlier ones.", "每个位置只看之前的一部分位置。"),
        Words("Each position sees all earlier ones in the context.", "每个位置能看到上下文中之前的全部位置。"),
        ("causal_softmax", "seq_len"),
        "sliding window attention, local attention, sparse attention, Longformer, linear attention, 滑动窗口, "
        "滑动窗口注意力, 稀疏注意力, 线性注意力",
    ),
    Absent(
        "Encoder and cross-attention",
        "编码器与交叉注意力",
        "cross_attention",
        Words("Queries of one sequence attend to another sequence.", "一个序列的查询去看另一个序列。"),
        Words("A decoder alone: a sequence attends to itself.", "只有解码器：序列只看自己。"),
        ("causal_self_attention", "forward_logits", "causal"),
        "cross-attention, encoder, encoder-decoder, seq2seq, BERT, T5, 交叉注意力, 编码器, 编码器解码器",
    ),
    Absent(
        "Padding",
        "填充（padding）",
        "padding",
        Words("Fills short texts up to one length and masks the rest.", "把短文本补到同一长度，再用掩码遮住。"),
        Words("Every window is a full piece of a long text.", "每个窗口都是长文本中完整的一段。"),
        ("sample_batch",),
        "pad_token, pad_token_id, padding mask, key_padding_mask, ignore_index, 填充掩码, 补齐, 填充",
    ),
    Absent(
        "Special tokens",
        "特殊词元",
        "special_tokens",
        Words("Tokens for the beginning or end of a text.", "表示文本开头或结尾的词元。"),
        Words("Generation stops after the number of tokens asked for.", "生成到指定的词元数为止。"),
        ("generate", "tokenizer"),
        "EOS, BOS, eos_token_id, bos_token, end of text, <|endoftext|>, stop token, CLS token, chat template, "
        "结束符, 起始符, 终止词元",
    ),
    Absent(
        "Training a tokenizer",
        "训练分词器",
        "tokenizer_training",
        Words("Counts pairs in a text to find merges of one's own.", "统计文本中的相邻对，得到自己的合并表。"),
        Words(
            "Bytes are the tokens, or GPT-2's merges are read from files.",
            "以字节为词元，或从文件读取 GPT-2 的合并表。",
        ),
        ("tokenizer", "bpe"),
        "train a tokenizer, train BPE, sentencepiece, WordPiece, unigram tokenizer, learn merges, 训练 BPE, 训练词表",
    ),
    # PyTorch
    Absent(
        "einsum",
        "爱因斯坦求和（einsum）",
        "einsum",
        Words("Products and sums written by indices.", "用下标书写的乘积与求和。"),
        Words("Products of matrices, with reshape and transpose.", "矩阵乘法，配合重塑与转置。"),
        ("matmul", "reshape", "transpose"),
        "torch.einsum, np.einsum, einops, rearrange, Einstein summation, 爱因斯坦求和约定",
    ),
    Absent(
        "Loss scaling (GradScaler)",
        "损失缩放（GradScaler）",
        "loss_scaling",
        Words(
            "Multiplies the loss so that float16 gradients do not vanish.",
            "放大损失，使 float16 的梯度不至于变成 0。",
        ),
        Words(
            "bfloat16 has the range of float32, so nothing is scaled.", "bfloat16 的范围与 float32 相同，无需缩放。"
        ),
        ("dtype",),
        "GradScaler, loss scale, float16, fp16, 损失放大",
    ),
    # Learning
    Absent(
        "Other schedules",
        "其他学习率调度",
        "other_schedules",
        Words("Steps, exponentials, restarts, or a plateau detector.", "阶梯、指数、重启，或按平台期调整。"),
        Words(
            "A linear warm-up, then a cosine or a constant (--schedule).",
            "线性预热，之后按余弦下降或保持不变（--schedule）。",
        ),
        ("learning_rate", "schedule"),
        "StepLR, MultiStepLR, ExponentialLR, ReduceLROnPlateau, OneCycleLR, CosineAnnealingWarmRestarts, "
        "linear decay, polynomial decay, WSD, cyclic learning rate, 阶梯学习率, 指数衰减, 余弦重启, 线性衰减",
    ),
    Absent(
        "Other optimizers",
        "其他优化器",
        "other_optimizers",
        Words("Other rules that turn gradients into new weights.", "由梯度得到新权重的其他规则。"),
        Words("AdamW is the only optimizer.", "优化器只有 AdamW。"),
        ("adamw", "optimizer"),
        "RMSprop, Adagrad, Adafactor, Lion, Muon, Shampoo, LAMB, torch.optim.SGD, Nesterov, 随机梯度下降",
    ),
    Absent(
        "Early stopping",
        "早停",
        "early_stopping",
        Words("Ends training when the validation loss no longer falls.", "验证损失不再下降时结束训练。"),
        Words(
            "Training runs for --steps updates and prints the validation loss on the way.",
            "训练固定更新 --steps 次，途中输出验证损失。",
        ),
        ("steps", "eval_interval", "evaluate"),
        "EarlyStopping, patience, stop early, 提前停止, 早停法",
    ),
    Absent(
        "Label smoothing",
        "标签平滑",
        "label_smoothing",
        Words("Moves some of the target's probability to the other tokens.", "把目标的一部分概率分给其他词元。"),
        Words(
            "The target has probability 1: the loss is −log p of the target.", "目标的概率为 1：损失是目标的 −log p。"
        ),
        ("cross_entropy",),
        "label_smoothing, smooth labels, z-loss, auxiliary loss, 平滑标签",
    ),
    Absent(
        "Averaged weights",
        "权重平均（EMA）",
        "weight_averaging",
        Words("Keeps a moving average of the weights for evaluation.", "保留权重的滑动平均，用于评估。"),
        Words(
            "The last weights are evaluated; AdamW averages gradients only.", "评估用最后的权重；AdamW 只平均梯度。"
        ),
        ("evaluate", "adamw"),
        "EMA, exponential moving average of weights, SWA, stochastic weight averaging, 权重的滑动平均",
    ),
    Absent(
        "Fine-tuning methods",
        "微调方法",
        "fine_tuning",
        Words("Adapters, instructions or rewards for a trained model.", "用适配器、指令或奖励继续训练已有模型。"),
        Words(
            "All weights are trained to predict the next token; a run can be resumed.",
            "全部权重都为预测下一词元而训练；训练可以续跑。",
        ),
        ("train", "load"),
        "LoRA, PEFT, QLoRA, adapter, RLHF, PPO, DPO, GRPO, SFT, instruction tuning, fine-tune, finetune, 微调, "
        "指令微调, 强化学习, 低秩适配, 对齐",
    ),
    # Generation
    Absent(
        "Beam search",
        "束搜索",
        "beam_search",
        Words("Keeps the best few continuations at each step.", "每一步保留最好的几个续写。"),
        Words(
            "One token is drawn at a time: by temperature, top-k and top-p, or the likeliest at temperature 0.",
            "每次只抽一个词元：按温度、top-k、top-p 抽样，温度为 0 时取最可能的。",
        ),
        ("generate", "temperature", "top_k"),
        "num_beams, BeamSearchScorer, contrastive search, 集束搜索, 束宽",
    ),
    Absent(
        "Repetition penalty",
        "重复惩罚",
        "repetition_penalty",
        Words("Lowers the logits of tokens that were already written.", "降低已经出现过的词元的 logits。"),
        Words(
            "Logits depend on the model, temperature, top-k and top-p.",
            "logits 只由模型、温度、top-k 和 top-p 决定。",
        ),
        ("temperature", "top_k", "top_p"),
        "repetition_penalty, frequency_penalty, presence_penalty, no_repeat_ngram_size, min_p, typical_p, "
        "logit_bias, 频率惩罚, 避免重复",
    ),
    Absent(
        "Speculative decoding",
        "推测解码",
        "speculative_decoding",
        Words("A small model proposes tokens that a large one checks.", "小模型提议词元，大模型检查。"),
        Words("Every token comes from the one model, with a KV cache.", "每个词元都由同一个模型生成，使用键值缓存。"),
        ("generate", "kv_cache"),
        "assisted generation, draft model, Medusa, continuous batching, 投机解码, 投机采样",
    ),
    Absent(
        "Quantisation",
        "量化",
        "quantization",
        Words(
            "Stores weights, or the KV cache, as integers of few bits.",
            "用位数很少的整数存放权重或键值缓存。",
        ),
        Words(
            "Weights can be read as bfloat16 in generation; the KV cache keeps the type of the activations.",
            "生成时权重可按 bfloat16 读取；键值缓存与激活值类型相同。",
        ),
        ("dtype", "generate", "kv_cache"),
        "quantization, int8, int4, GPTQ, AWQ, GGUF, bitsandbytes, load_in_8bit, KV-cache quantisation, "
        "quantized KV cache, distillation, pruning, 量化, KV 缓存量化, 蒸馏, 剪枝",
    ),
)
