"""The row -1, 7, 5, -5 has root mean square 5, so every number is a fraction (with eps = 0)."""

from byhand.book.entries.contract import Entry
from byhand.book.entries.layer_norm import ROOT_TAKEN, UNDIVIDED
from byhand.book.practice.edits import Asked, first, nth, within
from byhand.book.words.glossary import Concept
from byhand.book.words.language import Words
from byhand.engine.terms import Term, function, number, ratio, total


def _centred(xhat: Term, at: Asked) -> Term:
    """Return LayerNorm's element: the deviation from the mean over the standard deviation."""
    row = at.along(-1, "x")
    width, eps = number(len(row), "C"), xhat.parts[1].parts[0].parts[1]
    minus_mean = function("negative", ratio(total(row), width, "mean"))
    deviations = [total((x, minus_mean)) for x in row]
    variance = ratio(total(function("square", d) for d in deviations), width)
    return ratio(deviations[at.index[-1]], function("sqrt", total((variance, eps))), "xhat")


entry = Entry(
    stem="rms_norm",
    title_zh="均方根归一化",
    meanings_zh={"x": "各行向量", "gain": "增益，可省略（相当于 1）"},
    result_zh="归一化后的各行",
    inputs={"x": [[-1, 7, 5, -5]], "gain": [2, 1, 1, 3]},
    static={"eps": 0.0},
    result=[["-2/5", "7/5", 1, -3]],
    d_result=[[1, 0, 0, 0]],
    gradients={"x": [["99/250", "7/250", "1/50", "-1/50"]], "gain": ["-1/5", 0, 0, 0]},
    note="The root mean square is 5. Stretching x changes nothing, so the products of x and its gradient sum to 0.",
    note_zh="均方根为 5。把 x 整体伸缩不会改变结果，所以 x 与它的梯度逐项相乘，和为 0。",
    goal=Words(
        "Bring each token's vector to root mean square 1.",
        "把每个词元的向量调整为均方根 1。",
    ),
    why=Words(
        "The next layer then receives numbers of the same scale, however large the residual stream has grown. "
        "LayerNorm subtracts the mean first; the scale alone is enough. "
        "eps keeps the square root above 0 when all columns are 0.",
        "这样无论残差流中的数多大，下一层接收到的数尺度都相同。层归一化还先减去均值；其实只要尺度稳定就够了。各列全为 0 时，eps 保证根号内仍大于 0。",
    ),
    why_back=Words(
        "Stretching x as a whole does not change the result. "
        "The derivative therefore has no component along x: it is subtracted.",
        "把 x 整体伸缩，结果不变，所以导数在 x 的方向上没有分量：公式中减去的就是这个分量。",
    ),
    on_paper=(
        r"y_{t,i} = g_i\, \hat{x}_{t,i}, \quad \hat{x}_{t,i} = \frac{x_{t,i}}{\sqrt{r_t + \epsilon}}, \quad "
        r"r_t = \frac{1}{C} \sum_j x_{t,j}^2",
        r"\partial x_{t,i} = \mathrm{rstd}_t \left( h_{t,i} - "
        r"\hat{x}_{t,i}\, \frac{1}{C} \sum_j h_{t,j}\, \hat{x}_{t,j} \right), \quad "
        r"\mathrm{rstd}_t = \frac{1}{\sqrt{r_t + \epsilon}}, \quad "
        r"h_{t,i} = g_i\, \partial y_{t,i}, \quad \partial g_i = \sum_t \partial y_{t,i}\, \hat{x}_{t,i}",
    ),
    without=(
        (r"g_i\, \hat{x}_{t,i}, \quad \hat{x}_{t,i} = ", ""),
        (r", \quad h_{t,i} = g_i\, \partial y_{t,i}", ""),
        ("h", r"\partial y"),
        (r"\hat{x}", "y"),
    ),
    place=("stream", 1),  # after layer_norm
    torch="F.rms_norm(x, gain.shape, gain, eps)",
    asked=(
        "nn.RMSNorm, F.rms_norm, LlamaRMSNorm, Qwen2RMSNorm, Qwen3RMSNorm, T5LayerNorm, variance_epsilon, "
        "root mean square layer normalization, LayerNorm without the mean, RMSNorm vs LayerNorm, q_norm, k_norm, "
        "均方根层归一化, 不减均值的归一化, RMSNorm 与 LayerNorm 的区别"
    ),
    labels_zh={"mean": "均值", "avg": "均值", "xhat": "x\u0302"},
    saved=(r"\hat{x}", r"\mathrm{rstd}_t"),
    settings={"eps": r"\epsilon"},
    notations=(
        "RMSNorm(x)",
        r"\bar{a}_i = \frac{a_i}{\mathrm{RMS}(a)} g_i",
        r"\mathrm{RMS}(a) = \sqrt{\frac{1}{n} \sum_i a_i^2}",
        "x / sqrt(mean(x^2) + eps)",
        "x * rsqrt(x.pow(2).mean(-1, keepdim=True) + eps) * weight",
    ),
    concepts=(
        Concept(
            "root mean square normalization",
            "均方根归一化",
            ("rms_norm",),
            ("RMSNorm", "RMS norm", "root mean square", "均方根", "RMS 归一化"),
            is_first=True,
        ),
    ),
    mistakes=(
        (
            "divided by the mean square instead of its root",
            "除以了均方，而不是均方根",
            within(nth(1, first), "xhat"),
            "1.0 / xp.sqrt(xp.sum(x * x, axis=-1, keepdims=True) / width + eps)",
            "1.0 / (xp.sum(x * x, axis=-1, keepdims=True) / width + eps)",
        ),
        (
            "subtracted the mean: that is LayerNorm",
            "减去了均值：那是层归一化",
            within(_centred, "xhat"),
            "rstd = ",
            "x = x - xp.sum(x, axis=-1, keepdims=True) / width\n    rstd = ",
        ),
        (
            "forgot to divide the sum of squares by C",
            "平方和忘了除以 C",
            None,
            "keepdims=True) / width + eps",
            "keepdims=True) + eps",
        ),
        (
            "put eps outside the root",
            "把 eps 放到了根号外面",
            None,
            "1.0 / xp.sqrt(xp.sum(x * x, axis=-1, keepdims=True) / width + eps)",
            "1.0 / (xp.sqrt(xp.sum(x * x, axis=-1, keepdims=True) / width) + eps)",
        ),
        ("used a tiny eps, or none", "eps 太小，或者没有加", None, "width + eps", "width + 1e-6"),
        ("forgot the gain", "忘了乘以增益", None, "return gain * xhat", "return xhat"),
        ("multiplied by 1 + gain", "乘以了 1 + 增益", None, "return gain * xhat", "return (1 + gain) * xhat"),
    ),
    gradient_mistakes=(
        (
            "only divided by the root mean square, as if it were a constant",
            "只除以了均方根，把它当成了常数",
            lambda term, at: None if at.slot else nth(1, first)(term, at),
            "rstd * (h - xhat * mean_hx)",
            "rstd * h",
        ),
        ("forgot the gain in h", "h 里忘了乘增益", None, "h = d_y * gain[0] if gain else d_y", "h = d_y"),
        ("forgot to divide the average of h x̂ by C", "h x̂ 的均值忘了除以 C", None, " / xhat.shape[-1]", ""),
        ("gave the gain no gradient", "没有给增益梯度", None, "as_rows(d_y * xhat)", "0 * as_rows(d_y)"),
    ),
    part_mistakes={"avg(x²)": (UNDIVIDED, ROOT_TAKEN)},
)
