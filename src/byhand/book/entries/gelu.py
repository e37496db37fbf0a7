"""At -1, 0 and 1: the two sides add up to x, and the slope at 0 is one half."""

from byhand.book.entries.contract import Entry
from byhand.book.practice.catalogue import slips
from byhand.book.practice.edits import Asked, cotangent, first, nth, rest, within
from byhand.book.words.language import Words
from byhand.engine.terms import Term, function, number, product

T = "tanh(sqrt(2/pi)*1.044715)"  # tanh u at x = 1
SLOPE = f"(1-{T}**2)/2*sqrt(2/pi)*1.134145"  # x/2 times the derivative of tanh u, at x = 1


def _relu_slope(term: Term, at: Asked) -> Term:
    return product((cotangent(term, at), number(at.inputs[0][at.index] > 0)))


entry = Entry(
    stem="gelu",
    title_zh="GELU（tanh 形式）",
    meanings_zh={"x": "任意数组"},
    result_zh="经过门控的数组",
    inputs={"x": [-1, 0, 1]},
    result=[f"-(1-{T})/2", 0, f"(1+{T})/2"],
    d_result=[1, 1, 1],
    gradients={"x": [f"(1-{T})/2-{SLOPE}", "1/2", f"(1+{T})/2+{SLOPE}"]},
    note="The gates of 1 and −1 add up to 1: GELU(1) + GELU(−1) = tanh u.",
    note_zh="1 与 −1 两处，门的值之和为 1，所以 GELU(1) + GELU(−1) = tanh u。",
    goal=Words(
        "Leave large positive numbers almost as they are and press negative ones close to 0.",
        "较大的正数几乎不变，负数压到接近 0。",
    ),
    why=Words(
        "Two linear layers in a row amount to a single one (a row times U, times W, is the row times the one matrix U W). "
        "A function that bends (a non-linearity) between them computes what no single matrix can.",
        "两个线性层直接相连，仍只相当于一个线性层（一行数先乘 U 再乘 W，等于乘一个矩阵 U W）。中间加一个非线性函数，才能算出单个矩阵算不出的东西。",
    ),
    why_back=Words(
        "Each number affects its own result only, so its gradient is ∂y times the rate of GELU at x.",
        "每个数只影响它自己的结果，所以梯度就是 ∂y 乘以 GELU 在 x 处的变化率。",
    ),
    saved=("", r"\tanh u"),
    place=("activation", 1),
    torch='F.gelu(x, approximate="tanh")',
    asked=(
        "gelu_new, NewGELU, gelu_pytorch_tanh, gelu_tanh, F.gelu approximate tanh, nn.GELU approximate tanh, "
        "GELU of GPT-2, ggml_gelu, tanh approximation, why GELU, 为什么用 GELU, tanh 近似"
    ),
    notations=(
        r"F = \mathrm{GELU}(M W_{fc} + b_{fc})",
        "0.5 x (1 + tanh(sqrt(2/pi) (x + 0.044715 x^3)))",
        r"x \Phi(x)",
    ),
    mistakes=slips(
        "gelu.forward",
        relu=lambda term, at: function("positive", at.read(0, "x")),
        no_cubic=within(nth(1, first), "u"),
        no_half=rest,
    ),
    gradient_mistakes=slips("gelu.vjp", slope_relu=_relu_slope),
)
