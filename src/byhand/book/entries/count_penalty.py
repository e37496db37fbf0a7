"""Four logits whose tokens were drawn once, never, three times and twice, at f = 1/2 and p = 1."""

from byhand.book.entries.contract import Entry
from byhand.book.practice.edits import Asked
from byhand.book.words.language import Words
from byhand.engine.terms import Term, product, total


def _counted_once(term: Term, at: Asked) -> Term | None:
    return total((term.parts[0], term.parts[1].parts[0], term.parts[2])) if len(term.parts) == 3 else None


def _presence_each_time(term: Term, at: Asked) -> Term | None:
    if len(term.parts) < 3:
        return None
    n = term.parts[1].parts[1]
    return total((*term.parts[:2], product((term.parts[2], n))))


entry = Entry(
    stem="count_penalty",
    title_zh="频率惩罚与存在惩罚",
    meanings_zh={"logits": "logits", "counts": "每个词元已被抽到的次数"},
    result_zh="用于采样的 logits",
    inputs={"logits": [2, 1, 1, -1], "counts": [1, 0, 3, 2]},
    static={"f": 0.5, "p": 1.0},
    result=["1/2", 1, "-3/2", -3],
    d_result=[2, 4, 6, 8],
    gradients={"logits": [2, 4, 6, 8]},
    note="Token 2 was drawn three times: it loses 3 · 1/2 for that, and 1 for having been drawn at all.",
    note_zh="词元 2 被抽到三次：因次数减去 3 · 1/2，又因出现过再减去 1。",
    goal=Words(
        "Make tokens less likely the more often they were drawn.",
        "词元被抽到的次数越多，就越不容易再次被抽到。",
    ),
    why=Words(
        "f acts on counts and so on favourite words; p treats every token that was drawn alike, and so invites new "
        "topics. A difference means the same at every logit, whatever its sign.",
        "f 随次数增加，抑制反复使用的词；p 对所有已抽到的词元一视同仁，促使文本转向新话题。"
        "减去一个数对任何 logit 的作用都相同，与正负无关。",
    ),
    why_back=Words(
        "What is subtracted does not depend on the logit, so ∂y passes unchanged.",
        "减去的数与 logit 无关，所以 ∂y 原样传回。",
    ),
    place=("sampling", 1),
    torch="logits - f * counts - p * (counts > 0)",
    asked=(
        "frequency_penalty, presence_penalty, penalise by how often a word occurred, OpenAI penalty, "
        "频率惩罚, 存在惩罚, 按出现次数惩罚"
    ),
    notations=(
        r"\mu_j - c_j \alpha_f - \mathbb{1}(c_j > 0) \alpha_p",
        "logits - counts * frequency_penalty - (counts > 0) * presence_penalty",
    ),
    mistakes=(
        ("subtracted f once, however often it was drawn", "不论次数，f 只减了一次", _counted_once),
        ("subtracted p for each occurrence", "每出现一次就减一次 p", _presence_each_time),
    ),
)
