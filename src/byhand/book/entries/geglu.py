"""Gates of -1, 0 and 1, where GELU's tanh is one number and its negative."""

from byhand.book.entries.contract import Entry
from byhand.book.entries.gelu import SLOPE, T
from byhand.book.practice.edits import Asked, first, nth, within
from byhand.book.words.glossary import Concept
from byhand.book.words.language import Words
from byhand.engine.terms import Term, product
from byhand.equations.gelu import gelu
from byhand.equations.silu import gate_term


def _swapped(term: Term, at: Asked) -> Term:
    """Return the gate's number times the GELU of the other."""
    return product((gelu.terms(at.index, at.inputs[1:], None), at.read(0, "gate")))


def _by_silu(term: Term, at: Asked) -> Term:
    gate = at.read(0, "gate")
    return product((gate, gate_term(gate), at.read(1, "up")))


entry = Entry(
    stem="geglu",
    title_zh="GeGLU",
    meanings_zh={"gate": "门控线性层的结果", "up": "被门控的线性层的结果"},
    result_zh="经过门控的数组",
    inputs={"gate": [-1, 0, 1], "up": [4, 2, 8]},
    result=[f"-2*(1-{T})", 0, f"4*(1+{T})"],
    d_result=[1, 1, 1],
    gradients={
        "gate": [f"4*((1-{T})/2-{SLOPE})", 1, f"8*((1+{T})/2+{SLOPE})"],
        "up": [f"-(1-{T})/2", 0, f"(1+{T})/2"],
    },
    note="Where g is 0 nothing passes, and u receives no gradient; g itself still learns.",
    note_zh="门的输入为 0 时什么都不通过，也没有梯度传到 up；但门本身仍能学习。",
    goal=Words(
        "Let one linear layer decide how much of another's result passes.",
        "由一个线性层决定另一个线性层的结果通过多少。",
    ),
    why=Words(
        "A product of two numbers that both depend on the input can express what a sum of activations cannot: one "
        "layer computes a feature, the other decides when it matters.",
        "两个都随输入变化的数相乘，能表达激活值之和表达不了的东西：一层算出特征，另一层决定它何时起作用。",
    ),
    why_back=Words(
        "The product rule: each factor's derivative is ∂y times the other factor, and the gate's also passes through "
        "the slope of GELU.",
        "乘积法则：每个因子的导数是 ∂y 乘以另一个因子；门的那一份还要乘以 GELU 的斜率。",
    ),
    saved=("", "", r"\tanh v"),
    place=("activation", 5),
    asked=(
        "GELU gate, GemmaMLP, Gemma3MLP, hidden_activation gelu_pytorch_tanh, gated GELU, gelu_pytorch_tanh gate, "
        "MLP of Gemma, Gemma 的前馈网络"
    ),
    notations=(r"\mathrm{GEGLU}(x, W, V) = \mathrm{GELU}(x W) \otimes x V", "F.gelu(gate, approximate='tanh') * up"),
    concepts=(Concept("GeGLU", "GeGLU", ("geglu",), ("GEGLU", "gated GELU")),),
    mistakes=(
        ("took GELU of the other factor: gate and up swapped", "对另一个因子取了 GELU：gate 与 up 对调了", _swapped),
        ("gated by SiLU: that is SwiGLU", "用 SiLU 作门：那是 SwiGLU", _by_silu),
        ("forgot the cubic term", "忘了三次项", within(nth(1, first), "u")),
        ("forgot the factor up", "漏了因子 up", first),
    ),
    gradient_mistakes=(
        (
            "forgot the factor up",
            "漏了因子 up",
            lambda term, at: None if at.slot else product((term.parts[0], *term.parts[2:])),
        ),
    ),
)
