"""Deviations -7, -1, 1, 7 have variance 25, so every number is a fraction (with eps = 0)."""

from byhand.book.entries.contract import Entry
from byhand.book.practice.edits import Asked, first, nth, within
from byhand.book.words.language import Words
from byhand.engine.terms import Term, function, number, ratio


def _by_one_less(variance: Term, at: Asked) -> Term | None:
    above, count = variance.parts
    return ratio(above, number(count.value - 1, "C − 1"), "var") if count.value > 1 else None


def _root(term: Term, at: Asked) -> Term | None:
    return function("sqrt", term) if term.parts[1].value > 1 else None


UNDIVIDED = ("forgot to divide by C: that is the sum", "忘了除以 C：那是总和", first)
ROOT_TAKEN = ("took the root already", "已经开了方", _root)


entry = Entry(
    stem="layer_norm",
    title_zh="层归一化",
    meanings_zh={"x": "各行向量", "gain": "增益，可省略（相当于 1）", "bias": "偏置，可省略（相当于 0）"},
    result_zh="归一化后的各行",
    inputs={"x": [[1, 7, 9, 15]], "gain": [2, 1, 1, 1], "bias": [0, 0, 0, 1]},
    static={"eps": 0.0},
    result=[["-14/5", "-1/5", "1/5", "12/5"]],
    d_result=[[1, 0, 0, 0]],
    gradients={
        "x": [["13/125", "-16/125", "-9/125", "12/125"]],
        "gain": ["-7/5", 0, 0, 0],
        "bias": [1, 0, 0, 0],
    },
    note="The mean is 8 and the standard deviation 5. Shifting x changes nothing, so its gradient sums to 0.",
    note_zh="均值为 8，标准差为 5。把 x 整体平移不会改变结果，所以它的梯度之和为 0。",
    goal=Words(
        "Bring each token's vector to mean 0 and variance 1.",
        "把每个词元的向量调整为均值 0、方差 1。",
    ),
    why=Words(
        "The next layer then receives numbers of the same scale, however large the residual stream has grown. "
        "eps keeps the square root above 0 when all columns are equal.",
        "这样无论残差流中的数多大，下一层接收到的数尺度都相同。各列全相等时，eps 保证根号内仍大于 0。",
    ),
    why_back=Words(
        "If you add a number to a whole row of x, or multiply the row by a positive number, its result stays the same. "
        "So the loss must not respond to either change; the two terms that are subtracted make sure of that.",
        "把 x 的一行整体加上一个数，或乘以一个正数，结果都不变，所以梯度里不该有这两种改动的成分；公式中减去的两项，去掉的正是它们。",
    ),
    on_paper=(
        r"y_{t,i} = g_i\, \hat{x}_{t,i} + b_i, \quad "
        r"\hat{x}_{t,i} = \frac{x_{t,i} - \mu_t}{\sqrt{\sigma_t^2 + \epsilon}}, \quad "
        r"\mu_t = \frac{1}{C} \sum_j x_{t,j}, \quad \sigma_t^2 = \frac{1}{C} \sum_j (x_{t,j} - \mu_t)^2",
        r"\partial x_{t,i} = \mathrm{rstd}_t \left( h_{t,i} - \frac{1}{C} \sum_j h_{t,j} - "
        r"\hat{x}_{t,i}\, \frac{1}{C} \sum_j h_{t,j}\, \hat{x}_{t,j} \right), \quad "
        r"\mathrm{rstd}_t = \frac{1}{\sqrt{\sigma_t^2 + \epsilon}}, \quad "
        r"h_{t,i} = g_i\, \partial y_{t,i}, \quad \partial g_i = \sum_t \partial y_{t,i}\, \hat{x}_{t,i}, \quad "
        r"\partial b_i = \sum_t \partial y_{t,i}",
    ),
    without=(
        (r"g_i\, \hat{x}_{t,i} + b_i, \quad \hat{x}_{t,i} = ", ""),
        (r", \quad h_{t,i} = g_i\, \partial y_{t,i}", ""),
        ("h", r"\partial y"),
        (r"\hat{x}", "y"),
    ),
    place=("stream", 1),
    torch="F.layer_norm(x, gain.shape, gain, bias, eps)",
    asked=(
        "nn.LayerNorm, F.layer_norm, ln_f, input_layernorm, post_attention_layernorm, normalize activations, "
        "why normalise, gamma and beta, 归一化, 层规范化, 为什么要归一化"
    ),
    labels_zh={"mean": "均值", "var": "方差", "avg": "均值", "xhat": "x\u0302"},
    saved=(r"\hat{x}", r"\mathrm{rstd}_t"),
    settings={"eps": r"\epsilon"},
    notations=(
        "LN(x)",
        r"H = \mathrm{LN}(X)",
        r"M = \mathrm{LN}(X)",
        r"X_n = \mathrm{LN}(X)",
        r"\mathrm{LN}(x)_i = \frac{x_i - \mu}{\sqrt{\sigma^2 + \epsilon}}",
        "(x - mean) / sqrt(var + eps)",
        "y = gamma * (x - E[x]) / sqrt(Var[x] + eps) + beta",
    ),
    mistakes=(
        (
            "divided by the variance instead of its root",
            "除以了方差，而不是标准差",
            within(nth(1, first), "xhat"),
            "1.0 / xp.sqrt(variance + eps)",
            "1.0 / (variance + eps)",
        ),
        (
            "divided the variance by C − 1 instead of C",
            "方差除以了 C − 1，而不是 C",
            within(_by_one_less, "var"),
            "xp.sum(centred * centred, axis=-1, keepdims=True) / width",
            "xp.sum(centred * centred, axis=-1, keepdims=True) / (width - 1)",
        ),
        (
            "forgot to subtract the mean",
            "忘了减去均值",
            within(nth(0, first), "xhat"),
            "xhat = centred * rstd",
            "xhat = x * rstd",
        ),
        ("only subtracted the mean", "只减了均值", within(first, "xhat"), "xhat = centred * rstd", "xhat = centred"),
        ("took the mean square of x for the variance", "把 x 的均方当成了方差", None, "centred * centred", "x * x"),
        (
            "put eps outside the root",
            "把 eps 放到了根号外面",
            None,
            "xp.sqrt(variance + eps)",
            "(xp.sqrt(variance) + eps)",
        ),
        ("used a tiny eps, or none", "eps 太小，或者没有加", None, "variance + eps", "variance + 1e-5"),
        ("forgot the gain", "忘了乘以增益", None, "return gain * xhat + bias", "return xhat + bias"),
        ("forgot the bias", "忘了加偏置", None, "return gain * xhat + bias", "return gain * xhat"),
        (
            "multiplied by 1 + gain",
            "乘以了 1 + 增益",
            None,
            "return gain * xhat + bias",
            "return (1 + gain) * xhat + bias",
        ),
        (
            "added the bias before the gain",
            "先加偏置再乘增益",
            None,
            "return gain * xhat + bias",
            "return gain * (xhat + bias)",
        ),
    ),
    gradient_mistakes=(
        (
            "only divided by the standard deviation, as if mean and variance were constants",
            "只除以了标准差，把均值与方差当成了常数",
            lambda term, at: None if at.slot else nth(1, first)(term, at),
            "rstd * (h - mean_h - xhat * mean_hx)",
            "rstd * h",
        ),
        (
            "left out the mean of h: the mean of x was a constant",
            "漏了 h 的均值：把 x 的均值当成了常数",
            None,
            "h - mean_h - xhat * mean_hx",
            "h - xhat * mean_hx",
        ),
        (
            "left out the term of x̂: the variance was a constant",
            "漏了 x̂ 那一项：把方差当成了常数",
            None,
            "h - mean_h - xhat * mean_hx",
            "h - mean_h",
        ),
        ("forgot the gain in h", "h 里忘了乘增益", None, "h = d_y * affine[0] if affine else d_y", "h = d_y"),
        (
            "forgot the gain in the average of h x̂ alone",
            "只在 h x̂ 的均值里忘了乘增益",
            None,
            "xp.sum(h * xhat, axis=-1, keepdims=True)",
            "xp.sum(d_y * xhat, axis=-1, keepdims=True)",
        ),
        (
            "forgot to divide the average of h by C",
            "h 的均值忘了除以 C",
            None,
            "mean_h = xp.sum(h, axis=-1, keepdims=True) / width",
            "mean_h = xp.sum(h, axis=-1, keepdims=True)",
        ),
        (
            "forgot to divide the average of h x̂ by C",
            "h x̂ 的均值忘了除以 C",
            None,
            "xp.sum(h * xhat, axis=-1, keepdims=True) / width",
            "xp.sum(h * xhat, axis=-1, keepdims=True)",
        ),
        ("forgot the standard deviation", "忘了除以标准差", None, "d_x = rstd * (", "d_x = ("),
        ("forgot x̂ in the gradient of the gain", "增益的梯度里忘了乘 x̂", None, "as_rows(d_y * xhat)", "as_rows(d_y)"),
        ("gave the gain no gradient", "没有给增益梯度", None, "as_rows(d_y * xhat)", "0 * as_rows(d_y)"),
        (
            "gave the bias no gradient",
            "没有给偏置梯度",
            None,
            "xp.sum(as_rows(d_y), axis=0)",
            "0 * xp.sum(as_rows(d_y), axis=0)",
        ),
    ),
    part_mistakes={
        "mean": (UNDIVIDED,),
        "var": (UNDIVIDED, ("divided by C − 1 instead of C", "除以了 C − 1，而不是 C", _by_one_less), ROOT_TAKEN),
    },
)
