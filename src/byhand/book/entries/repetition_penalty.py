"""Four logits, three of which belong to tokens that have occurred, at penalty 2."""

from byhand.book.entries.contract import Entry
from byhand.book.practice.edits import Asked, negated
from byhand.book.words.language import Words
from byhand.engine.terms import Term, ratio, total


def _always_divided(term: Term, at: Asked) -> Term | None:
    return ratio(term.parts[0], term.parts[1]) if term.op == "product" else None


def _subtracted(term: Term, at: Asked) -> Term | None:
    return total((term.parts[0], negated(term.parts[1], at))) if len(term.parts) == 2 else None


entry = Entry(
    stem="repetition_penalty",
    title_zh="重复惩罚",
    meanings_zh={"logits": "logits", "counts": "每个词元在已有文本中出现的次数"},
    result_zh="用于采样的 logits",
    inputs={"logits": [2, 1, 1, -1], "counts": [1, 0, 3, 2]},
    static={"r": 2.0},
    result=[1, 1, "1/2", -2],
    d_result=[2, 4, 6, 8],
    gradients={"logits": [1, 4, 3, 16]},
    note=(
        "Token 2 occurred three times and is penalised once; token 3 has a negative logit, which is multiplied and so falls too."
    ),
    note_zh="词元 2 出现了三次，也只惩罚一次；词元 3 的 logit 是负数，要乘以 r，这样也会变小。",
    goal=Words(
        "Make tokens that the text already has less likely.",
        "降低文本中已有词元再次出现的可能。",
    ),
    why=Words(
        "A phrase that has occurred makes itself likelier, so a text can run in circles. "
        "Division makes a positive logit smaller; a negative one would grow, and is multiplied instead.",
        "出现过的短语会使自己更可能再次出现，文本容易原地打转。正的 logit 除以 r 变小；负的 logit 除以 r 反而变大，所以改为乘以 r。",
    ),
    why_back=Words(
        "Each logit was scaled by 1, 1/r or r, so the backward pass scales ∂y by the same factor.",
        "每个 logit 都乘了 1、1/r 或 r，反向传播时 ∂y 也乘以同一个系数。",
    ),
    place=("sampling", 0),
    torch="torch.where(counts > 0, torch.where(logits > 0, logits / r, logits * r), logits)",
    asked=(
        "RepetitionPenaltyLogitsProcessor, repeat_penalty, CTRL penalty, avoid repetition, stop repeating, "
        "避免重复, 惩罚重复, 复读"
    ),
    notations=("torch.where(score < 0, score * penalty, score / penalty)", r"z_v / (T \cdot I(v \in g))"),
    mistakes=(
        ("divided a negative logit too", "负的 logit 也除了", _always_divided),
        ("subtracted the penalty", "减去了惩罚系数", _subtracted),
    ),
)
