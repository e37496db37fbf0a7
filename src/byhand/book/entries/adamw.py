"""The first step from zero moments: corrected, the direction is the sign of the gradient (with eps = 0)."""

from byhand.book.entries.contract import Worked

worked = Worked(
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
    note={
        "en": "m is 0.1 g and v is 0.01 g^2; the corrections undo both factors, so a weight moves by lr and decay.",
        "zh": "m = 0.1 g，v = 0.01 g^2；偏差修正恰好抵消这两个系数，所以每个权重移动 lr，外加权重衰减。",
    },
)
