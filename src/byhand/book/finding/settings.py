"""Settings as answers: every field of a run's configuration, and its names in other programs."""

from __future__ import annotations

from byhand.book.finding import source
from byhand.book.finding.finding import Finding, split
from byhand.book.words.language import Words
from byhand.book.words.tables import cells

FILES = {"ModelConfig": "model_config.py"}  # the other classes are in config.py

# field | English | Chinese | other names; an indented line continues the one above it, # names the class
TABLE = """
# ModelConfig
vocab_size | Vocabulary size V | 词表大小 V | n_vocab, padded_vocab_size, size of the vocabulary, 词表有多大
seq_len | Context length T | 上下文长度 T | block_size, n_ctx, n_positions, max_position_embeddings, context_length,
    max_seq_len, sequence length, context window, maximum length, T_max, 序列长度, 上下文窗口, 最大长度
d_model | Width C of the residual stream | 模型宽度 C | n_embd, hidden_size, dim, emb_dim, embed_dim, model width,
    hidden dimension, embedding dimension, 隐藏层维度, 隐藏层大小, 隐藏维度, 嵌入维度, 词向量维度, 残差流的宽度
n_layers | Number of blocks L | 块数 L | n_layer, num_hidden_layers, num_layers, depth, how many layers, 层数, 多少层
n_heads | Number of attention heads H | 注意力头数 H | n_head, num_attention_heads, num_heads, nhead, how many heads,
    头数, 多少个头
n_kv_heads | Heads of keys and values K | 键值头数 K | num_key_value_heads, n_head_kv, num_kv_heads, kv_heads,
    head_count_kv, how many key-value heads, 多少个键值头
d_head | Width D of a head | 每个头的宽度 D | head_dim, head_size, d_kv, key_length, width of a head, head dimension,
    每个头的维度, 头的宽度
d_ff | Width F of the MLP | 前馈网络的宽度 F | intermediate_size, n_inner, ffn_dim, dim_feedforward, hidden_dim,
    4 * n_embd, expansion factor, MLP width, 中间层维度, 前馈层宽度, 前馈维度
mlp_bias | Biases of the MLP | 前馈网络的偏置 | MLP without bias, bias=False, bias-free linear layers,
    不带偏置的线性层
norm | LayerNorm or RMSNorm | 层归一化或均方根归一化 | norm_type, normalization layer, which norm, 用哪种归一化
norm_eps | Epsilon of the norms | 归一化的 ε | layer_norm_epsilon, layer_norm_eps, rms_norm_eps, norm_epsilon
positions | How positions are told: learned, rotary, none | 位置的表示方式 | position_embedding_type, use_rope, NoPE,
    no positional embedding, without positions, learned or rotary positions, 不用位置编码, 用哪种位置编码
rope_base | Base of the rotary angles | 旋转角的底数 | rope_theta, rotary_emb_base, rope.freq_base, theta of RoPE,
    旋转基数
rope_fraction | Part of a head that is rotated | 每个头中旋转的比例 | partial_rotary_factor, rotary_pct, rotary_dim,
    partial rotary, rotary_ndims, 部分旋转
rope_pairing | Which columns turn together | 哪两列一起旋转 | rope_interleaved, rope interleave, interleaved rotary,
    NeoX style, GPT-J style, halves or neighbours, is_neox_style, 旋转配对, 相邻配对
rope_scaling | Scaled angles for longer texts | 为更长文本缩放旋转角 | rope_scaling, rope_type, YaRN, llama3 rope,
    rope_parameters, rope.scaling.type, rope_freqs, position interpolation, NTK by parts, context extension,
    extend the context, 位置插值, 上下文扩展, 长上下文
rope_factor | Largest factor by which pairs are slowed | 放慢的最大倍数 | scaling factor of RoPE, rope.scaling.factor,
    scale_linear, 缩放倍数
rope_original_len | Context before it was stretched | 拉长之前的长度 | original_max_position_embeddings,
    original_context_length, 原长度
rope_slow | Turns up to which a pair is slowed in full | 完全放慢的圈数上限 | low_freq_factor, beta_slow
rope_fast | Turns from which on a pair stays | 保持不变的圈数下限 | high_freq_factor, beta_fast
rope_attention | Factor of turned queries and keys | 旋转后的查询和键的倍数 | attention_factor, attn_factor, mscale,
    attention_scaling, 注意力温度
qk_norm | Normalise queries and keys | 对查询和键归一化 | q_norm, k_norm, QK norm, use_qk_norm, QK-Norm, qk_layernorm,
    query-key normalization, 查询键归一化
rope_window_base | Base of the angles in layers with a window | 带窗口的层的旋转角底数 | rope_local_base_freq,
    rope.freq_base_swa, local rope theta
qk_norm_over | What the norm of queries and keys spans | 查询与键归一化的范围 | norm over all heads, whole q_norm
attention_divisor | What scores are divided by the root of | 注意力分数除以哪个数的平方根 | query_pre_attn_scalar,
    attention_multiplier, scaling of scores, attention.scale, softmax scale, unscaled scores, 注意力缩放
layer_pattern | Kinds of layers over the depth | 各层的种类 | layer_types, sliding_window_pattern, attention_types,
    no_rope_layers, NoPE layers, global and local layers, alternating attention, hybrid layers, 混合层,
    局部与全局注意力
attention_window | How many positions one attends to | 注意力窗口的大小 | attention_window_size, local_window_size,
    max_window_layers, length of the attention window, 窗口大小, 注意力窗口
attention_bias | Biases of attention's linear layers | 注意力线性层的偏置 | qkv_bias, c_attn.bias, q_proj.bias,
    use_bias, add_bias_linear, bias in attention, 注意力偏置
norm_position | Where the norms stand | 归一化的位置 | do_layer_norm_before, norm_first, pre-norm or post-norm,
    sandwich norm, post_feedforward_layernorm, pre_feedforward_layernorm, 前置或后置归一化, 归一化放在哪里
parallel_residual | Attention and MLP side by side | 并行的注意力与前馈网络 | use_parallel_residual, parallel block,
    parallel attention, parallel attention and MLP, 并行残差, 并行块
norm_affine | Gain and bias of the norms | 归一化的增益与偏置 | elementwise_affine, learnable LayerNorm,
    LayerNorm weight and bias, gain of RMSNorm
activation | Activation of the MLP | 前馈网络的激活函数 | hidden_act, hidden_activation, GELU or ReLU
causal | Causal or bidirectional attention | 因果或双向注意力 | bidirectional attention, is_decoder, 双向注意力,
    非因果
lm_head_bias | Bias of the LM head | 语言模型头的偏置 | lm_head.bias
tied_embeddings | Weight tying | 权重绑定 | tie_word_embeddings, tie_weights, share embeddings, weight sharing,
    tied embeddings, wte = lm_head, 权重共享, 共享嵌入, 嵌入共享
scaled_embeddings | Embeddings times the root of the width | 嵌入乘以宽度的平方根 | embed_scale, normalizer of Gemma,
    scale_embedding, sqrt(d_model) embeddings, 嵌入缩放
logit_softcap | Cap of the logits | logits 的上限 | final_logit_softcapping value, soft_cap, largest logit
zero_init | Output projections begin at zero | 输出投影从零开始 | zero initialisation, zero-init residual,
    init to zeros, 零初始化, 初始化为零
lora | Rank of the adapters (LoRA) | 适配器（LoRA）的秩 | LoraConfig r, lora_r, lora rank, rank of LoRA, --lora,
    LoRA 的秩
lora_alpha | Scale of the adapters | 适配器的缩放 | LoraConfig lora_alpha, alpha of LoRA, LoRA scaling, LoRA 的 alpha
lora_on | Which matrices get adapters | 哪些矩阵带适配器 | target_modules, LoRA target modules, 适配哪些矩阵
# DataConfig
data | The text to train on | 训练用的文本 | corpus, training data, my own text, own data, dataset file,
    tiny shakespeare, openwebtext, 训练数据, 语料, 自己的数据, 自己的文本
chat | Conversations to train on | 用来训练的对话 | --chat, conversations, chat fine-tuning, instruction tuning, SFT,
    ShareGPT, messages, 对话数据, 指令微调, 对话微调
text_field | Field of JSON lines that holds the text | JSON Lines 中存放文本的字段 | jsonl, ndjson, parquet column,
    text column, text_column, dataset_text_field, JSON 数据, 字段名
encoding | Encoding of text files | 文本文件的编码 | character set, charset, UTF-16, latin-1, cp1252, gbk, gb18030,
    big5, UnicodeDecodeError, 字符编码, 乱码
tokenizer | A tokenizer's file | 分词器文件 | tokenizer.json, tiktoken ranks, own vocabulary, 自己的词表, 词表文件
val_fraction | Share of text for validation | 留作验证的比例 | train test split, validation split, val.bin, 验证集,
    划分验证集
val_data | A text of its own for validation | 单独的验证文本 | validation file, eval dataset, held-out file, dev set,
    验证文件, 单独的验证集
# OptimConfig
optimizer | How gradients update parameters | 用梯度更新参数的方法 | --optimizer muon, optim, optimizer_name,
    which optimizer, 选哪个优化器
lr | Highest learning rate | 最高学习率 | learning rate, step size, max_lr, 学习率设多少, 步长大小
min_lr | Learning rate at the last step | 最后一步的学习率 | eta_min, final learning rate, 最小学习率
warmup_steps | Steps of warm-up | 预热步数 | warmup_iters, num_warmup_steps, warmup_ratio
schedule | What follows the warm-up | 预热之后的学习率调度 | lr_scheduler_type, decay_lr, constant learning rate,
    linear decay, linear schedule, get_linear_schedule_with_warmup, 恒定学习率, 线性衰减, 线性下降
cooldown | Part of the run over which the rate falls | 学习率下降所占的训练比例 | cool-down, warmdown, warmdown_ratio,
    cooldown_frac, WSD, warmup-stable-decay, trapezoidal schedule, decay phase, 冷却阶段, 梯形调度
embedding_lr | Learning rate of the embeddings | 嵌入表的学习率 | wte_lr, lr of the embedding, 嵌入学习率
head_lr | Learning rate of the LM head | 语言模型头的学习率 | unembedding_lr, lm_head lr, output learning rate
vector_lr | Learning rate of biases and gains | 偏置与增益的学习率 | scalar_lr, bias learning rate
muon_lr | Learning rate of Muon | Muon 的学习率 | matrix_lr, muon learning rate
muon_momentum | Momentum of Muon | Muon 的动量系数 | momentum coefficient, muon beta
beta1 | Memory of the mean gradient | 一阶矩的衰减系数 | adam_beta1, betas[0]
beta2 | Memory of the squared gradient | 二阶矩的衰减系数 | adam_beta2, betas[1]
eps | Epsilon of AdamW | AdamW 的 ε | adam_epsilon
weight_decay | Strength of weight decay | 权重衰减系数 | L2 regularisation, L2 penalty, L2 正则化
decay | Which arrays decay | 哪些参数衰减 | no_decay, weight decay of biases, 哪些参数不衰减
grad_clip | Largest gradient norm | 梯度范数的上限 | max_grad_norm value, clip value
ema | Averaged weights | 权重平均 | EMA, ema_decay, exponential moving average of weights, AveragedModel,
    torch.optim.swa_utils, Polyak averaging, 权重的滑动平均, 指数滑动平均, 平均权重
# TrainConfig
steps | Number of updates | 更新步数 | max_iters, max_steps, num_train_epochs, iterations, number of epochs, epochs,
    训练步数, 训练多少步, 训练轮数, 迭代次数
batch_size | Windows in a micro-batch B | 批次大小 B | per_device_train_batch_size, micro_batch_size, size of a batch,
    批大小, 批量大小
grad_accum | Micro-batches in an update | 每次更新的微批数 | gradient_accumulation_steps, accumulate_grad_batches,
    梯度累加
eval_interval | Steps between evaluations | 评估间隔 | eval_steps, eval_iters, 多久评估一次
eval_windows | Validation windows | 验证窗口数 | eval_batches
save_interval | Steps between checkpoints | 保存间隔 | save_steps, checkpoint every, 多久保存一次
keep | Checkpoints kept | 保留的检查点数 | save_total_limit
keep_best | Keep the best checkpoint | 保留最好的检查点 | load_best_model_at_end, save_best_only, best checkpoint,
    always_save_checkpoint, early stopping, 最优检查点, 保存最好的模型, 早停
seed | Random seed | 随机种子 | torch.manual_seed, set_seed, random_state, reproducible, reproducibility, 种子,
    可复现, 随机数种子
dtype | Type of numbers: float32, float64 or bfloat16 | 数值类型 | mixed precision, torch_dtype, autocast, amp, bf16,
    bfloat16, precision, half precision, --outtype, --quantize, 混合精度, 半精度, 精度, 数据类型
runtime | Which runtime computes | 由哪个运行时计算 | device, cuda, .to(device), gpu, torch.compile, jit, backend,
    tpu, 显卡, 用 GPU 训练, 编译, 加速训练
threads | Threads of the CPU | CPU 线程数 | num_threads, torch.set_num_threads, num_workers, 多线程, 线程数
mesh | Devices and how they share | 多个设备如何分工 | DistributedDataParallel, DDP, FSDP, DataParallel,
    tensor parallel, sequence parallel, data parallel, multi-GPU, torchrun, device_map, several GPUs, 多卡, 数据并行,
    张量并行, 分布式训练
recompute | Compute again instead of keeping | 重算以节省内存 | gradient checkpointing, activation checkpointing,
    gradient_checkpointing_enable, save memory, out of memory, OOM, 梯度检查点, 激活重算, 节省显存, 显存不够,
    内存不足, 显存
"""


def _setting(owner: str, name: str, en: str, zh: str, asked: str) -> Finding:
    return Finding(
        name=name,
        title=Words(en, zh),
        kind="setting",
        code=(source.PACKAGE / FILES.get(owner, "config.py"), f"{owner}.{name}"),
        asked=split(asked),
    )


SETTINGS = tuple(_setting(owner, *row) for owner, row in cells(TABLE))
