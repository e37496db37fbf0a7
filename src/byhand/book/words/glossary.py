"""The glossary: each concept in English and in the Chinese of textbooks, and the code that it names.

`where` searches it, and pages in both languages take their terms from it.
"""

from dataclasses import dataclass

from byhand.book.words.language import Words
from byhand.book.words.tables import cells


@dataclass(frozen=True)
class Concept(Words):
    """A term in both languages, the equations and places that implement it (best first), and its other names.

    is_first    whether it is another name of the first, not something that is used there
    """

    entries: tuple[str, ...]
    also: tuple[str, ...] = ()
    is_first: bool = False


# English | Chinese | equations and places, of which = names the term itself | other names; an indented line continues
TERMS = """
# Data and tables
token | 词元 | embedding | token id, 标记, 词元编号
vocabulary | 词表 | embedding | byte-level vocabulary, 字节级词表
tokenizer | 分词器 | tokenization, bpe | tokenization, 分词
byte-pair encoding | 字节对编码 | bpe, bpe_training | BPE, 子词
merge | 合并 | bpe_training, bpe | merge rank, 合并规则, 合并表
pre-tokenization | 预分词 | pre_tokenization | pre-tokenisation, pre-tokenizer, 预切分
special token | 特殊词元 | bpe | <|endoftext|>
token embedding | 词元嵌入 | embedding | embedding lookup, lookup table, 词嵌入, wte, wte_, word embedding
positional embedding | 位置嵌入 | add_positional | position embedding, learned positions, position,
    positional encoding, 位置编码, wpe, wpe_, 加位置嵌入
embeddings | 嵌入 | embedding, add_positional | token and position embeddings, 嵌入向量
next-token prediction | 下一词元预测 | cross_entropy, sample_batch | predict the next token, 预测下一个词元
batch | 批次 | sample_batch | next-token prediction pairs, targets shifted by one, dataset, mini-batch,
    sample a batch, 样本批, 数据集
# The block
layer normalization | 层归一化 | = layer_norm | LayerNorm, LN, normalisation, final norm, final LN, 最后归一化,
    add and norm, 层标准化
mean and variance | 均值与方差 | layer_norm | mu, sigma, standard deviation, epsilon, gain and bias, 标准差
residual connection | 残差连接 | residual | skip connection, residual add, residual stream, 残差加法, 残差流,
    跳跃连接
linear layer | 线性层 | linear, matmul | fully connected, dense layer, projection, 全连接层, 投影, affine map,
    仿射变换
output projection | 输出投影 | linear, causal_self_attention | w_proj, b_proj, W_o, b_o
LM head | 语言模型头 | linear, forward_logits | logits, hidden to logits, final linear layer, w_lm, w_lm_, b_lm,
    b_lm_, lm_head.w, unembedding, 输出层
feed-forward network | 前馈网络 | mlp, linear, gelu | MLP, FFN, multilayer perceptron, 多层感知机, w_fc, b_fc, w_out,
    b_out, feed-forward sublayer, feed forward, 4C
Transformer block | Transformer 块 | block | decoder block, pre-norm block, post-norm block, block wiring, 残差块,
    解码器块, sublayer, 子层
pre-norm | 前置归一化 | block, layer_norm | 预归一化, norm before the sublayer, norm_position
post-norm | 后置归一化 | block, layer_norm | norm after the sum, 后归一化
activation function | 激活函数 | gelu, relu | non-linearity, 非线性, 高斯误差线性单元, mlp.act
rectified linear unit | 线性整流函数 | = relu | 修正线性单元
# Attention
self-attention | 自注意力 | = causal_self_attention | attention, 注意力, scaled dot-product attention, 缩放点积注意力,
    self_attention, attention sublayer, 注意力机制
multi-head attention | 多头注意力 | causal_self_attention, split_qkv, merge_heads | attention heads, 注意力头, 多头,
    single head, 单头, MHA
query, key and value | 查询、键与值 | = split_qkv, causal_self_attention, linear | Q K V, QKV projection,
    Q/K/V projection, w_qkv slice, slice, 切片, 拆分多头, decomposition
packed QKV weights | 合并的 QKV 权重 | causal_self_attention, split_qkv | w_qkv, b_qkv, qkv
attention scores | 注意力分数 | = attention_scores | dot product, 点积, compatibility scores, similarity,
    scaling factor, scale the scores, 缩放因子, 缩放点积得分, square root of d_k, attention scaling, 注意力得分
causal mask | 因果掩码 | = causal_softmax | mask, masking, 掩码, look-ahead mask, future tokens, -1e9, 因果遮罩,
    minus infinity
attention weights | 注意力权重 | causal_softmax, softmax | attention probabilities, attention distribution,
    softmax over keys, 注意力概率
softmax | softmax 函数 | softmax, causal_softmax | 归一化指数函数, normalise to probabilities
weighted sum of values | 值的加权求和 | mix | weighted sum, 加权求和, attention output, aggregate information,
    weighted average, 加权平均
concatenating heads | 拼接多头 | = merge_heads | concat heads, merge heads, 合并多头
# Loss and learning
cross-entropy loss | 交叉熵损失 | = cross_entropy, loss | cross entropy, 交叉熵, negative log likelihood, 负对数似然,
    NLL, surprise, one-hot, target class, 目标类别, loss computation
loss | 损失 | loss, cross_entropy | 损失函数, nats, perplexity, 困惑度
log-sum-exp | 对数和指数 | cross_entropy, softmax | numerical stability, 数值稳定性, logsumexp
backpropagation | 反向传播 | backward | autograd, 自动微分, chain rule, 链式法则, reverse mode, backward pass,
    gradient, 梯度, d_x
computation graph | 计算图 | node, backward | backprop graph, parents, recorded graph
cotangent | 上游梯度 | backward | incoming gradient, gradient of the result, 传回来的梯度, d_y
gradient accumulation | 梯度累积 | train | micro-batch, 微批, grad_accum
gradient check | 梯度检验 | gradcheck | finite differences, 有限差分, central difference, 数值梯度
AdamW optimizer | AdamW 优化器 | = adamw, optimizer_step | optimizer update, 优化器更新, Adam, parameter update,
    参数更新, weight update, 权重更新
Muon optimizer | Muon 优化器 | = muon, update_rule | orthogonalised momentum, 正交化动量
orthogonalisation | 正交化 | = orthogonalise, muon | Newton-Schulz iteration, orthogonal matrix,
    牛顿–舒尔茨迭代, 正交矩阵
singular values | 奇异值 | orthogonalise, muon | singular vectors, SVD, 奇异值分解, 奇异向量
parameter groups | 参数分组 | update_rule, --embedding-lr | param_groups, learning rate of each group, 各组的学习率
weight averaging | 权重平均 | averaged, --ema | average of the weights, 平均后的权重
gradient descent | 梯度下降 | adamw, optimizer_step | gradient descent update, SGD
bias correction | 偏差修正 | adamw | 偏置修正, 偏差校正, m_hat, v_hat
moment estimates | 矩估计 | adamw | beta_1, beta_2, momentum, moving average, 滑动平均, 一阶矩, 二阶矩, 动量
weight decay | 权重衰减 | adamw | decoupled weight decay, 解耦权重衰减, regularisation, 正则化
learning-rate schedule | 学习率调度 | learning_rate | learning rate, warm-up, cosine decay, cool-down,
    学习率, 预热, 余弦退火, 冷却
gradient clipping | 梯度裁剪 | clip_gradients | global norm, 全局范数, grad_clip
training loop | 训练循环 | train | training step, 训练步, trainer, one training step
# Generation
sampling | 采样 | generate, temperature, top_k | generation loop, 文本生成, decoding, greedy, sample next token,
    解码, inference, 推理, autoregressive, 自回归
temperature | 温度 | temperature | divide logits by temp, 温度系数, temp, tau
top-k sampling | top-k 采样 | = top_k | top k logits, keep the largest logits, 前 k 个
nucleus sampling | 核采样 | = top_p | top-p sampling, top-p 采样
min-p sampling | min-p 采样 | = min_p | min_p, min-p 截断
repetition penalty | 重复惩罚 | repetition_penalty | repeat penalty, 复读惩罚
prefill | 预填充 | generate | first pass over the prompt, 提示词, prompt
KV cache | 键值缓存 | kv_cache, generate | key-value cache, KV 缓存, incremental decoding
# Arrays
broadcasting | 广播 | add, mul | broadcast, 广播机制
matrix product | 矩阵乘法 | matmul, linear | matrix multiplication, matrix core, GEMM, 矩阵核心,
    batched matrix product, 批量矩阵乘法, linear transformation
element-wise product | 逐元素乘法 | = mul | Hadamard product, 哈达玛积, 逐元素相乘
row-major layout | 行主序 | reshape, tensor | memory layout, 内存布局, flat array, flatten, 展平, flat offset,
    偏移量, strides, 步长, 行优先, last axis contiguous
transpose | 转置 | transpose | 转置矩阵, transposed matrix
tensor | 张量 | tensor | array, shape, 数组, 形状
no_grad | 不记录梯度 | no_grad | GradMode, inference only, grad mode
hyperparameters | 超参数 | config | model configuration, configuration, 模型配置
decoder-only Transformer | 仅解码器 Transformer | forward_logits, model | GPT, decoder, 解码器, forward pass,
    前向传播
weight tying | 权重绑定 | --tied-embeddings, transpose | tied embeddings, tied LM head, 权重共享, 共享嵌入
initialization | 初始化 | initialization | weight initialization, initial weights, 权重初始化
evaluation | 评估 | evaluate | validation loss, 验证损失, bits per byte
checkpoint | 检查点 | save, load | save a model, load a model, 断点, 保存模型
"""


CONCEPTS = tuple(
    Concept(en, zh, tuple(entries.removeprefix("= ").split(", ")), tuple(also.split(", ")), entries.startswith("= "))
    for _, (en, zh, entries, also) in cells(TERMS)
)
