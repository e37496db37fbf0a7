"""The first step with momentum 1/2: the direction n is a multiple of g, and one Newton-Schulz step is done."""

from byhand.book.entries.contract import Entry
from byhand.book.practice.edits import nth, rest
from byhand.book.words.language import Words
from byhand.engine.terms import number

entry = Entry(
    stem="muon",
    title_zh="Muon 更新",
    meanings_zh={
        "theta": "线性层的权重，[输入, 输出]",
        "g": "权重的梯度",
        "m": "动量：梯度的指数滑动平均",
        "lr": "学习率",
    },
    result_zh="新的权重与动量",
    inputs={"theta": [[1, 0], [0, 1]], "g": [[2, 1], [-2, 4]], "m": [[0, 0], [0, 0]], "lr": "1/10"},
    static={"momentum": 0.5, "weight_decay": 0.1, "steps": 1, "eps": 0.0},
    result=(
        [["554481/625000", "-64269/1250000"], ["46233/1250000", "572517/625000"]],
        [[1, "1/2"], [-1, 2]],
    ),
    d_result=([[1, 0], [0, 0]], [[0, 0], [0, 0]]),
    gradients={
        "theta": [["99/100", 0], [0, 0]],
        "g": [["-88263/6250000", "-10317/3125000"], ["-37293/3125000", "11997/6250000"]],
        "m": [["-29421/6250000", "-3439/3125000"], ["-12431/3125000", "3999/6250000"]],
        "lr": "-70519/62500",
    },
    note=(
        "n is 3/4 of g, and orthogonalisation ignores that factor: "
        "the result is that of the example of orthogonalise, whatever the size of the gradient."
    ),
    note_zh="n 是 g 的 3/4 倍，正交化会消去这个倍数：得到的方向与“正交化”一页的例子相同，与梯度的大小无关。",
    goal=Words(
        "Move a weight matrix by the same length in every direction of its gradient.",
        "让权重矩阵沿梯度的每个方向都移动同样的长度。",
    ),
    why=Words(
        "A few directions dominate the gradient of a matrix, and a step along it hardly moves the others. "
        "With all singular values near 1, rare directions are learned as fast as frequent ones, and a step changes the output by at most about lr s times the length of the input. "
        "One state, the momentum, is kept instead of two.",
        "矩阵的梯度由少数几个方向主导，直接沿梯度更新，其他方向几乎不动。把奇异值都调到 1 附近，少见的方向与常见的方向学得一样快；不计系数 s，一步对输出的改变约不超过学习率乘以输入的长度。"
        "只需保存动量这一个状态，而不是两个。",
    ),
    place=("learning", 4),
    torch="torch.optim.Muon([theta], lr, weight_decay, momentum, ns_steps=steps, eps=eps).step()",
    asked=(
        "Muon, torch.optim.Muon, MomentUm Orthogonalized by Newton-Schulz, nesterov momentum, Nesterov, heavy ball, "
        "Muon vs AdamW, optimizer for hidden layers, Shampoo, 动量, 涅斯捷罗夫动量, Muon 优化器, 隐藏层优化器"
    ),
    settings={"momentum": r"\beta", "weight_decay": r"\lambda"},
    notations=(
        r"\theta_t = \theta_{t-1} - \eta\, \mathrm{NewtonSchulz5}(B_t)",
        r"B_t = \mu B_{t-1} + G_t",
        r"W \leftarrow W - \eta \left( 0.2 \sqrt{\max(M, N)}\, O + \lambda W \right)",
    ),
    mistakes=(
        ("forgot the weight decay", "忘了权重衰减", nth(1, nth(2, nth(1, lambda decay, at: number(0))))),
        ("moved up the gradient", "朝梯度的方向移动了", nth(1, rest)),
        (
            "used the gradient without orthogonalising it",
            "直接用了梯度，没有正交化",
            nth(1, nth(2, nth(0, lambda term, at: at.read(1, "g")))),
        ),
    ),
)
