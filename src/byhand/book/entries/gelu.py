"""At -1, 0 and 1: the two sides add up to x, and the slope at 0 is one half."""

from byhand.book.entries.contract import Entry
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
    mistakes=(
        (
            "used ReLU",
            "用成了 ReLU",
            lambda term, at: function("positive", at.read(0, "x")),
            "return 0.5 * x * (1.0 + tanh)",
            "return x * (x > 0)",
        ),
        (
            "forgot the cubic term",
            "忘了三次项",
            within(nth(1, first), "u"),
            "return 0.5 * x * (1.0 + tanh)",
            "return 0.5 * x * (1.0 + namespace(x).tanh(K * x))",
        ),
        ("forgot the factor one half", "忘了系数二分之一", rest, "return 0.5 * x", "return x"),
        (
            "used the exact form, with erf",
            "用了精确形式（erf）",
            None,
            "return 0.5 * x * (1.0 + tanh)",
            'return 0.5 * x * (1.0 + registry["gelu_exact"].forward(x)[1][1])',
        ),
        (
            "used the sigmoid form, x σ(1.702 x)",
            "用了 sigmoid 形式 x σ(1.702 x)",
            None,
            "return 0.5 * x * (1.0 + tanh)",
            "return 0.5 * x * (1.0 + namespace(x).tanh(0.851 * x))",
        ),
        (
            "forgot the root of 2/π",
            "忘了乘以 √(2/π)",
            None,
            "return 0.5 * x * (1.0 + tanh)",
            "return 0.5 * x * (1.0 + namespace(x).tanh(x * (1 + CUBIC * (x * x))))",
        ),
    ),
    gradient_mistakes=(
        ("used the derivative of ReLU", "用了 ReLU 的导数", _relu_slope, "gate + slope", "x > 0"),
        ("forgot the slope of tanh", "忘了 tanh 的导数", None, "gate + slope", "gate"),
        (
            "forgot the factor 3 of the cubic term's derivative",
            "三次项的导数忘了乘 3",
            None,
            "1.5 * K * CUBIC",
            "0.5 * K * CUBIC",
        ),
        ("took 1 − tanh for 1 − tanh²", "把 1 − tanh² 写成了 1 − tanh", None, "1.0 - tanh * tanh", "1.0 - tanh"),
        (
            "used the slope of the exact form",
            "用了精确形式的导数",
            None,
            "return (d_y * (gate + slope),)",
            'return registry["gelu_exact"].vjp((x, registry["gelu_exact"].forward(x)[1][1]), d_y)',
        ),
        (
            "forgot the cubic term",
            "忘了三次项",
            None,
            "return (d_y * (gate + slope),)",
            "tanh = namespace(x).tanh(K * x)\n    return (d_y * (0.5 + 0.5 * tanh + 0.5 * x * (1.0 - tanh * tanh) * K),)",
        ),
        (
            "used the slope of the sigmoid form",
            "用了 sigmoid 形式的导数",
            None,
            "return (d_y * (gate + slope),)",
            "tanh = namespace(x).tanh(0.851 * x)\n    return (d_y * (0.5 + 0.5 * tanh + 0.5 * x * (1.0 - tanh * tanh) * 0.851),)",
        ),
    ),
)
