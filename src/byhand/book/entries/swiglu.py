"""Gates of 1/4, 1/2 and 3/4, from the logarithms of 1/3, 1 and 3."""

from byhand.book.entries.contract import Entry
from byhand.book.practice.edits import Asked
from byhand.book.words.glossary import Concept
from byhand.book.words.language import Words
from byhand.engine.terms import Term, product
from byhand.equations.silu import gate_term


def _swapped(term: Term, at: Asked) -> Term:
    """Return the gate's number times the SiLU of the other."""
    gate, up = at.read(0, "gate"), at.read(1, "up")
    return product((up, gate_term(up), gate))


entry = Entry(
    stem="swiglu",
    title_zh="SwiGLU",
    meanings_zh={"gate": "门控线性层的结果", "up": "被门控的线性层的结果"},
    result_zh="经过门控的数组",
    inputs={"gate": ["-log(3)", 0, "log(3)"], "up": [4, 2, 8]},
    result=["-log(3)", 0, "6*log(3)"],
    d_result=[1, 1, 1],
    gradients={
        "gate": ["1-3*log(3)/4", 1, "6+3*log(3)/2"],
        "up": ["-log(3)/4", 0, "3*log(3)/4"],
    },
    note="Where g is 0 nothing passes, and u receives no gradient; g itself still learns.",
    note_zh="门的输入为 0 时什么都不通过，也没有梯度传到 up；但门本身仍能学习。",
    goal=Words(
        "Let one linear layer decide how much of another's result passes.",
        "由一个线性层决定另一个线性层的结果通过多少。",
    ),
    why=Words(
        "A product of two numbers that both depend on the input can express what a sum of activations cannot: "
        "one layer computes a feature, the other decides when it matters.",
        "两个都随输入变化的数相乘，能表达激活值之和表达不了的东西：一层算出特征，另一层决定它何时起作用。",
    ),
    why_back=Words(
        "The product rule: "
        "each factor's derivative is ∂y times the other factor, and the gate's also passes through the slope of SiLU.",
        "乘积法则：每个因子的导数是 ∂y 乘以另一个因子；门的那一份还要乘以 SiLU 的斜率。",
    ),
    saved=("", "", "s"),
    place=("activation", 4),
    torch="F.silu(gate) * up",
    asked=(
        "SwiGLU, GLU, SiLU gate, gate_proj, up_proj, down_proj, LlamaMLP, Qwen2MLP, ffn_gate, ffn_up, "
        "act_fn(gate_proj(x)) * up_proj(x), gated linear unit, gated MLP, GEGLU, w1 w2 w3, FeedForward of Llama, "
        "门控前馈网络"
    ),
    notations=(
        r"\mathrm{SwiGLU}(x, W, V) = \mathrm{Swish}_1(x W) \otimes x V",
        r"(\mathrm{Swish}_1(x W) \otimes x V)\, W_2",
        "F.silu(gate) * up",
        "down_proj(act_fn(gate_proj(x)) * up_proj(x))",
    ),
    concepts=(
        Concept("SwiGLU", "SwiGLU", ("swiglu",), ("gate_proj", "up_proj", "down_proj")),
        Concept(
            "gated linear unit (GLU)",
            "门控线性单元",
            ("swiglu",),
            ("GLU", "gating", "gate", "gated MLP", "门控", "GLU（门控线性单元）"),
        ),
    ),
    mistakes=(
        (
            "took the sigmoid of the other factor: gate and up swapped",
            "对另一个因子取了 sigmoid：gate 与 up 对调了",
            _swapped,
            "s = sigmoid(gate)",
            "s = sigmoid(up)",
        ),
        (
            "gated by the sigmoid alone: that is the original GLU",
            "只用 sigmoid 作门：那是最初的 GLU",
            lambda term, at: product(term.parts[1:]),
            "return gate * s * up",
            "return s * up",
        ),
        (
            "forgot the factor up",
            "漏了因子 up",
            lambda term, at: product(term.parts[:2]),
            "return gate * s * up",
            "return gate * s",
        ),
    ),
    gradient_mistakes=(
        (
            "held the sigmoid constant",
            "把 sigmoid 当成了常数",
            lambda term, at: None if at.slot else product(term.parts[:3]),
            "s * (1.0 + gate * (1.0 - s))",
            "s",
        ),
        (
            "forgot the factor up",
            "漏了因子 up",
            lambda term, at: None if at.slot else product((term.parts[0], *term.parts[2:])),
            "d_y * up * s",
            "d_y * s",
        ),
    ),
)
