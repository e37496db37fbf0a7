"""Two rows, rank two, scale two."""

from byhand.book.entries.contract import Entry
from byhand.book.practice.edits import Asked, nth, rest
from byhand.book.words.glossary import Concept
from byhand.book.words.language import Words
from byhand.engine.terms import Term, product, total


def _all_scaled(term: Term, at: Asked) -> Term:
    frozen, (scale, row) = term.parts[0], term.parts[1].parts
    return product((scale, total((frozen, row))))


def _unscaled(term: Term, at: Asked) -> Term | None:
    return rest(term, at) if at.slot else None


entry = Entry(
    stem="low_rank",
    title_zh="低秩更新（LoRA）",
    meanings_zh={"y": "冻结的矩阵 W 给出的各行", "h": "同样的各行乘以 A，每行 r 个数", "up": "第二个窄矩阵"},
    result_zh="矩阵 W + s A B 给出的各行",
    inputs={"y": [[1, 0, 2], [0, 1, -1]], "h": [[1, 2], [0, -1]], "up": [[1, 0, -1], [0, "1/2", 1]]},
    static={"scale": 2.0},
    result=[[3, 2, 4], [0, 0, -3]],
    d_result=[[1, 0, 0], [0, 1, 1]],
    gradients={
        "y": [[1, 0, 0], [0, 1, 1]],
        "h": [[2, 0], [-2, 3]],
        "up": [[2, 0, 0], [4, -2, -2]],
    },
    note="With B = 0 the result is Y: a model whose adapters begin there computes exactly what its base computes.",
    note_zh="B = 0 时结果就是 Y：适配器从零开始时，模型的计算与原模型完全相同。",
    goal=Words(
        "Add the rows of two thin matrices to those of a frozen one.",
        "把两个窄矩阵给出的各行加到冻结矩阵给出的各行上。",
    ),
    why=Words(
        "The product A B is as large as W, but has only r (I + O) numbers to learn instead of I O. "
        "The frozen W needs no gradient and no moments, and after training W + s A B takes its place at no cost.",
        "乘积 A B 与 W 一样大，但要学的只有 r (I + O) 个数，而不是 I O 个。冻结的 W 不需要梯度和动量；训练之后用 W + s A B 代替 W，推理没有额外开销。",
    ),
    why_back=Words(
        "Y is only added, so its cotangent passes unchanged. "
        "H and B are multiplied with each other and by s, so each gets the cotangent times the other, times s.",
        "Y 只是被加上，它的上游梯度原样传回。H 与 B 彼此相乘，再乘以 s，所以各自的梯度是上游梯度乘以另一个，再乘以 s。",
    ),
    place=("stream", 4),
    torch="y + scale * (h @ up)",
    asked=(
        "LoRA, low-rank adaptation, peft, get_peft_model, lora_A, lora_B, lora_alpha / r, adapter, adapters, "
        "parameter-efficient fine-tuning, BA x, delta W, merge_and_unload, 低秩适配, 低秩适应, 适配器, 参数高效微调"
    ),
    saved=("", "B"),
    on_paper=(
        r"Y' = Y + s\, H B",
        r"\partial Y = \partial Y', \quad \partial H = s\, \partial Y' B^{\top}, \quad "
        r"\partial B = s \sum_{\mathrm{rows}} H^{\top} \partial Y'",
    ),
    settings={"scale": "s"},
    notations=(
        "h = W_0 x + B A x",
        r"W' = W + \frac{\alpha}{r} A B",
        r"W_0 + \Delta W = W_0 + B A",
        "result + lora_B(lora_A(x)) * scaling",
    ),
    concepts=(
        Concept(
            "low-rank adapter",
            "低秩适配器",
            ("low_rank", "--lora"),
            ("LoRA", "low-rank adaptation", "adapters", "低秩适配"),
            is_first=True,
        ),
    ),
    mistakes=(
        ("forgot the scale", "忘了乘以 s", nth(1, rest)),
        ("forgot the frozen matrix", "忘了加上冻结矩阵的结果", rest),
        ("scaled the frozen matrix too", "把冻结矩阵的结果也乘了 s", _all_scaled),
    ),
    gradient_mistakes=(("forgot the scale", "忘了乘以 s", _unscaled),),
)
