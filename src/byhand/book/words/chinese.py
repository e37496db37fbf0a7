"""The equations in Chinese: each title, and what each symbol means. The English words stand in the equations' files.

The terms are those of Chinese textbooks, as the glossary fixes them; a test holds that no equation and no symbol
is missing.
"""

from __future__ import annotations

from byhand.engine.equation import Composite, Equation, Symbol

TITLES = {
    "adamw": "AdamW 更新",
    "add": "加法",
    "add_positional": "位置嵌入",
    "attention_scores": "缩放点积分数",
    "causal_self_attention": "因果自注意力",
    "causal_softmax": "因果 softmax",
    "cross_entropy": "交叉熵",
    "embedding": "词元嵌入",
    "gelu": "GELU（tanh 形式）",
    "layer_norm": "层归一化",
    "linear": "线性层",
    "matmul": "矩阵乘法",
    "merge_heads": "合并多头",
    "mix": "值的加权求和",
    "mul": "逐元素乘法",
    "relu": "ReLU",
    "reshape": "变形",
    "residual": "残差连接",
    "softmax": "Softmax",
    "split_qkv": "拆分查询、键、值与多头",
    "temperature": "温度",
    "top_k": "Top-k 截断",
    "top_p": "Top-p（核）截断",
    "transpose": "转置",
}

MEANINGS: dict[str, dict[str, str]] = {
    "adamw": {
        "theta": "参数",
        "g": "参数的梯度",
        "m": "梯度的指数滑动平均（一阶矩）",
        "v": "梯度平方的指数滑动平均（二阶矩）",
        "lr": "学习率",
        "t": "步数，从 1 数起",
        "theta, m, v": "新的参数与两个矩",
    },
    "add": {"a": "第一个加数", "b": "第二个加数", "y": "和"},
    "add_positional": {
        "e": "词元向量",
        "table": "每个位置一行的表",
        "start": "第一个位置之前已有的位置数；不给则为 0",
        "x": "带有位置信息的词元向量",
    },
    "attention_scores": {"q": "查询", "k": "键", "scores": "加掩码之前的分数"},
    "causal_self_attention": {
        "h": "归一化后的残差流",
        "w_qkv": "查询、键、值合并在一起的投影权重",
        "b_qkv": "它的偏置",
        "w_proj": "输出投影权重",
        "b_proj": "它的偏置",
        "a": "注意力加到残差流上的量",
    },
    "causal_softmax": {"scores": "T 个查询对 S 个键的分数", "weights": "注意力权重，每行之和为 1"},
    "cross_entropy": {
        "logits": "每个位置一行 logits",
        "targets": "实际出现的下一个词元",
        "loss": "平均损失，单位奈特",
    },
    "embedding": {"table": "词表中每个词元一行的表", "tokens": "词元编号，取值 [0, V)", "e": "每个词元一个向量"},
    "gelu": {"x": "任意数组", "y": "经过门控的数组"},
    "layer_norm": {
        "x": "各行向量",
        "gain": "增益，可省略（相当于 1）",
        "bias": "偏置，可省略（相当于 0）",
        "y": "归一化后的各行",
    },
    "linear": {"x": "各行向量", "weight": "权重，按 [输入, 输出] 排列", "bias": "偏置，可省略", "y": "各行的结果"},
    "matmul": {"a": "左因子", "b": "右因子", "y": "积"},
    "merge_heads": {"x": "每个头的输出", "y": "各头并排拼接"},
    "mix": {"weights": "注意力权重", "v": "值", "mixed": "每个查询得到的混合向量"},
    "mul": {"a": "第一个因子", "b": "第二个因子", "y": "积"},
    "relu": {"x": "任意数组", "y": "负数置零后的数组"},
    "reshape": {"x": "任意数组", "y": "按行主序排列的同一批元素"},
    "residual": {"x": "残差流", "a": "子层的输出", "y": "经过子层之后的残差流"},
    "softmax": {"x": "分数或 logits", "p": "权重，每行之和为 1"},
    "split_qkv": {"x": "合并投影 H W_qkv + b_qkv 的结果", "q, k, v": "每个头的查询、键、值"},
    "temperature": {"logits": "logits", "z": "用于采样的 logits"},
    "top_k": {"logits": "logits", "z": "用于采样的 logits"},
    "top_p": {"logits": "logits", "z": "用于采样的 logits"},
    "transpose": {"a": "矩阵", "y": "它的转置"},
}

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

IN_FORMULAS = {r"\text{otherwise}": r"\text{其余情形}", r"\text{ is kept}": r"\text{ 被保留}"}


def title(equation: Equation | Composite, lang: str) -> str:
    """Return the equation's title in `en` or `zh`."""
    return TITLES[equation.name] if lang == "zh" else equation.title


def meaning(equation: Equation | Composite, symbol: Symbol, lang: str) -> str:
    """Return what a symbol of the equation means, in `en` or `zh`."""
    return MEANINGS[equation.name][symbol.name] if lang == "zh" else symbol.meaning


def shape(written: str, lang: str) -> str:
    """Return a symbol's shape in `en` or `zh`: `(...) each` has a word in it."""
    each = written.removesuffix(" each")
    return f"各为 {each}" if lang == "zh" and each != written else written


def formula(latex: str, lang: str) -> str:
    """Return LaTeX with its words in `en` or `zh`."""
    for english, chinese in IN_FORMULAS.items() if lang == "zh" else ():
        latex = latex.replace(english, chinese)
    return latex
