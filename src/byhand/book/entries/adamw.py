"""The first step from zero moments: corrected, the direction is the sign of the gradient (with eps = 0)."""

from byhand.book.entries.contract import Entry
from byhand.book.practice.edits import Asked, Slips, first, nth, of_input, rest, within
from byhand.book.words.language import Words
from byhand.engine.terms import Term, number, product, total

_undecayed = within(lambda decay, at: number(0), "wd")


def _coupled(term: Term, at: Asked) -> Term | None:
    decay = product((number(at.static["weight_decay"], "wd"), at.read(0, "theta")))
    kept = _undecayed(term, at)
    return kept and of_input(1, lambda g, at: total((g, decay)))(kept, at)


_UNCORRECTED: Slips = (("forgot the bias correction", "忘了偏差修正", first),)


entry = Entry(
    stem="adamw",
    title_zh="AdamW 更新",
    meanings_zh={
        "theta": "参数",
        "g": "参数的梯度",
        "m": "梯度的指数滑动平均（一阶矩）",
        "v": "梯度平方的指数滑动平均（二阶矩）",
        "lr": "学习率",
        "t": "步数，从 1 数起",
    },
    result_zh="新的参数与两个矩",
    inputs={"theta": [1, -2], "g": [2, "-1/2"], "m": [0, 0], "v": [0, 0], "lr": "1/10", "t": 1},
    static={"beta1": 0.9, "beta2": 0.99, "eps": 0.0, "weight_decay": 0.1},
    result=(["89/100", "-47/25"], ["1/5", "-1/20"], ["1/25", "1/400"]),
    d_result=([1, 1], [0, 0], [0, 0]),
    gradients={
        "theta": ["99/100", "99/100"],
        "g": [0, 0],
        "m": ["-9/20", "-9/5"],
        "v": ["99/80", "-99/5"],
        "lr": "1/10",
    },
    note=(
        "m is 0.1 g and v is 0.01 g²; the corrections cancel both factors, so each weight moves by lr plus its decay."
    ),
    note_zh="m = 0.1 g，v = 0.01 g²；偏差修正恰好抵消这两个系数，所以每个权重的改变量是学习率加上权重衰减。",
    goal=Words(
        "Move each weight against its gradient.",
        "让每个权重沿梯度的反方向更新。",
    ),
    why=Words(
        "m averages the gradients and v their squares, so the size of m̂ / √v̂ is about 1 or less whatever the gradients' scale, and α alone sets the size of the step. "
        "Dividing by 1 − β^t corrects for the start at 0; weight decay pulls each weight towards 0.",
        "m 是梯度的滑动平均，v 是梯度平方的滑动平均，所以无论梯度大小，m̂ / √v̂ 一般不超过 1，步长由学习率决定。"
        "两者从 0 开始，起初偏小，除以 1 − β^t 正好补足；权重衰减把权重拉向 0。",
    ),
    place=("learning", 2),
    torch="torch.optim.AdamW([theta], lr, (beta1, beta2), eps, weight_decay).step()",
    asked=(
        "torch.optim.AdamW, torch.optim.Adam, betas, exp_avg, exp_avg_sq, Adam vs AdamW, how are weights updated, "
        "update the weights, 权重怎么更新, 更新权重, 自适应学习率"
    ),
    labels_zh={"mhat": "m\u0302", "vhat": "v\u0302"},
    settings={"beta1": r"\beta_1", "beta2": r"\beta_2", "eps": r"\epsilon", "weight_decay": r"\lambda"},
    notations=(
        r"\theta_{t} = \theta_{t-1} - \alpha \hat m_t / (\sqrt{\hat v_t} + \epsilon)",
        "W_new = W - learning_rate dL/dW",
        "W_V_new = W_V - learning_rate dL/dW_V",
        "w = w - lr * grad",
    ),
    mistakes=(
        (
            "forgot the bias correction",
            "忘了偏差修正",
            within(first, "mhat", "vhat"),
            "(m / correct_m) / (xp.sqrt(v / correct_v) + eps)",
            "m / (xp.sqrt(v) + eps)",
        ),
        ("forgot the weight decay", "忘了权重衰减", _undecayed, "direction + weight_decay * theta", "direction"),
        (
            "put the decay into the gradient (that is Adam with L2)",
            "把权重衰减加进了梯度（那是带 L2 的 Adam）",
            _coupled,
            "xp = namespace(theta)",
            "xp = namespace(theta)\n    g, weight_decay = g + weight_decay * theta, 0.0",
        ),
        (
            "moved up the gradient",
            "朝梯度的方向移动了",
            nth(1, rest),
            "direction + weight_decay",
            "-direction + weight_decay",
        ),
        (
            "used the bare gradient",
            "直接用了梯度本身",
            nth(1, nth(2, lambda term, at: at.read(1, "g"))),
            "(m / correct_m) / (xp.sqrt(v / correct_v) + eps)",
            "g",
        ),
        ("corrected the first moment alone", "只修正了一阶矩", None, "xp.sqrt(v / correct_v)", "xp.sqrt(v)"),
        ("corrected the second moment alone", "只修正了二阶矩", None, "(m / correct_m)", "m"),
        (
            "put eps inside the root",
            "把 eps 放到了根号里面",
            None,
            "xp.sqrt(v / correct_v) + eps",
            "xp.sqrt(v / correct_v + eps)",
        ),
        (
            "added eps before the bias correction",
            "在偏差修正之前加了 eps",
            None,
            "(xp.sqrt(v / correct_v) + eps)",
            "((xp.sqrt(v) + eps) / xp.sqrt(correct_v))",
        ),
        ("left out eps", "漏了 eps", None, "xp.sqrt(v / correct_v) + eps", "xp.sqrt(v / correct_v) + 1e-12"),
        ("forgot the root", "忘了开方", None, "xp.sqrt(v / correct_v)", "v / correct_v"),
        (
            "decayed the new weight instead of the old",
            "衰减的是新权重，而不是旧权重",
            None,
            "theta - lr * (direction + weight_decay * theta)",
            "(theta - lr * direction) * (1 - lr * weight_decay)",
        ),
        (
            "did not scale the decay by the learning rate",
            "权重衰减没有乘学习率",
            None,
            "theta - lr * (direction + weight_decay * theta)",
            "theta - lr * direction - weight_decay * theta",
        ),
        ("forgot (1 − β₁) before the gradient", "梯度前忘了乘 (1 − β₁)", None, "(1.0 - beta1) * g", "g"),
        (
            "swapped β₁ and β₂",
            "把 β₁ 与 β₂ 对调了",
            None,
            "xp = namespace(theta)",
            "xp = namespace(theta)\n    beta1, beta2 = beta2, beta1",
        ),
        (
            "counted the first step as step 2",
            "把第一步数成了第 2 步",
            None,
            "xp = namespace(theta)",
            "xp = namespace(theta)\n    t = t + 1",
        ),
        (
            "took every step for the first",
            "把每一步都当成第 1 步",
            None,
            "xp = namespace(theta)",
            "xp = namespace(theta)\n    t = 1",
        ),
        (
            "used β₂ = 0.999",
            "用了 β₂ = 0.999",
            None,
            "xp = namespace(theta)",
            "xp = namespace(theta)\n    beta2 = 0.999",
        ),
        (
            "used β₂ = 0.99",
            "用了 β₂ = 0.99",
            None,
            "xp = namespace(theta)",
            "xp = namespace(theta)\n    beta2 = 0.99",
        ),
        (
            "used β₂ = 0.95",
            "用了 β₂ = 0.95",
            None,
            "xp = namespace(theta)",
            "xp = namespace(theta)\n    beta2 = 0.95",
        ),
        (
            "used β₁ = 0.9",
            "用了 β₁ = 0.9",
            None,
            "xp = namespace(theta)",
            "xp = namespace(theta)\n    beta1 = 0.9",
        ),
        (
            "updated the first moment with the gradient of the step before",
            "更新时用了上一步的一阶矩",
            None,
            "(m / correct_m)",
            "((m - (1.0 - beta1) * g) / beta1 / correct_m)",
        ),
    ),
    part_mistakes={"mhat": _UNCORRECTED, "vhat": _UNCORRECTED},
)
