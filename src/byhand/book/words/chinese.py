"""The settings of a model in Chinese; their English words stand in `config.py`."""

CONFIG = {
    "vocab_size": "V：词表中的词元数（字节级为 256）",
    "seq_len": "T：最长上下文，以词元计",
    "d_model": "C：残差流的宽度",
    "n_layers": "L：块数",
    "n_heads": "H：注意力头数，必须整除 d_model",
    "d_ff": "F：前馈网络的宽度；不给则为 4 d_model",
    "norm_position": "pre：x + f(LN(x))，最后再加一个 LN。post：LN(x + f(x))，没有最后的 LN",
    "norm_affine": "每个层归一化是否带可学习的增益与偏置",
    "activation": "前馈网络的非线性",
    "causal": "每个位置只能看自己和之前的位置",
    "lm_head_bias": "语言模型头是否带偏置",
    "tied_embeddings": "语言模型头的权重用转置后的词元嵌入表",
}
