"""Gates of -1, 0 and 1, where GELU's tanh is one number and its negative."""

from byhand.book.entries.contract import Entry
from byhand.book.entries.gelu import SLOPE, T
from byhand.book.entries.swiglu import entry as swiglu
from byhand.book.practice.catalogue import slips
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
    meanings_zh=swiglu.meanings_zh,
    result_zh=swiglu.result_zh,
    inputs={"gate": [-1, 0, 1], "up": [4, 2, 8]},
    result=[f"-2*(1-{T})", 0, f"4*(1+{T})"],
    d_result=[1, 1, 1],
    gradients={
        "gate": [f"4*((1-{T})/2-{SLOPE})", 1, f"8*((1+{T})/2+{SLOPE})"],
        "up": [f"-(1-{T})/2", 0, f"(1+{T})/2"],
    },
    note=swiglu.note,
    note_zh=swiglu.note_zh,
    goal=swiglu.goal,
    why=swiglu.why,
    why_back=Words(
        "The product rule: "
        "each factor's derivative is ∂y times the other factor, and the gate's also passes through the slope of GELU.",
        "乘积法则：每个因子的导数是 ∂y 乘以另一个因子；门的那一份还要乘以 GELU 的斜率。",
    ),
    saved=("", "", r"\tanh v"),
    place=("activation", 5),
    torch='F.gelu(gate, approximate="tanh") * up',
    asked=(
        "GELU gate, GemmaMLP, Gemma3MLP, hidden_activation gelu_pytorch_tanh, gated GELU, gelu_pytorch_tanh gate, "
        "MLP of Gemma, Gemma 的前馈网络"
    ),
    notations=(r"\mathrm{GEGLU}(x, W, V) = \mathrm{GELU}(x W) \otimes x V", "F.gelu(gate, approximate='tanh') * up"),
    concepts=(Concept("GeGLU", "GeGLU", ("geglu",), ("GEGLU", "gated GELU")),),
    mistakes=slips(
        "geglu.forward", swapped=_swapped, by_silu=_by_silu, no_cubic=within(nth(1, first), "v"), no_up=first
    ),
    gradient_mistakes=swiglu.gradient_mistakes[1:],
)
