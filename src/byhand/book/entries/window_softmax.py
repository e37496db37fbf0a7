"""A window of two: logarithms as scores make fractions of the weights; no query sees a 9."""

from byhand.book.entries import causal_softmax as causal
from byhand.book.entries.contract import Entry
from byhand.book.entries.softmax import OWN_WEIGHT_ONLY
from byhand.book.practice.edits import Asked
from byhand.book.words.glossary import Concept
from byhand.book.words.language import Words
from byhand.engine.terms import Term, number
from byhand.equations.causal_softmax import causal_softmax
from byhand.equations.window_softmax import terms


def _one_key_more(term: Term, at: Asked) -> Term:
    return terms(at.index, at.inputs, None, window=at.static["window"] + 1)


def _no_window(term: Term, at: Asked) -> Term:
    return causal_softmax.terms(at.index, at.inputs, None)


def _masked_after(term: Term, at: Asked) -> Term:
    return number(0, "masked") if term.label == "masked" else _no_window(term, at)


def exponentials(inputs, result):
    """Return the exponentials over the keys in the window, 0 for masked ones, and their sums."""
    (letter, e), (_, sums) = causal.exponentials(inputs, result)
    return (letter, e), (r"\textstyle\sum_s e^{S_{t,s} + M_{t,s} - m_t}", sums)


entry = Entry(
    stem="window_softmax",
    title_zh="滑动窗口 softmax",
    meanings_zh={"scores": "T 个查询对 S 个键的分数", "start": causal.BEFORE_ZH},
    result_zh="注意力权重，每行之和为 1",
    inputs={"scores": [[0, 9, 9, 9], [0, "log(3)", 9, 9], [9, "log(2)", "log(5)", 9], [9, 9, "log(4)", 0]]},
    static={"window": 2},
    result=[[1, 0, 0, 0], ["1/4", "3/4", 0, 0], [0, "2/7", "5/7", 0], [0, 0, "4/5", "1/5"]],
    d_result=[[1, 1, 1, 1], [1, 0, 0, 0], [1, 0, 1, 0], [0, 1, 0, 1]],
    gradients={
        "scores": [
            [0, 0, 0, 0],
            ["3/16", "-3/16", 0, 0],
            [0, "-10/49", "10/49", 0],
            [0, 0, "-4/25", "4/25"],
        ]
    },
    note="Query 2 no longer sees key 0, and query 3 neither key 0 nor key 1: the 9 there changes nothing.",
    note_zh="查询 2 不再看到键 0，查询 3 既看不到键 0 也看不到键 1：那里的 9 不影响任何结果。",
    goal=Words(
        "Turn each row of scores into weights that sum to 1, over the last W tokens up to this one.",
        "把每行分数变成和为 1 的权重，只分给最近的 W 个词元（含自己）。",
    ),
    why=Words(
        "Work and cache then grow with W instead of with the length of the text. "
        "Information from further back still arrives: each block passes it on by up to W − 1 positions.",
        "这样计算量与缓存只随 W 增长，而不随文本长度增长。更早的信息仍能传到：每个块最多再传 W − 1 个位置。",
    ),
    why_back=Words(
        "The weights of a row always sum to 1, so one can gain only what the others lose: "
        "the weighted mean of ∂P is subtracted. A masked score changes no weight.",
        "一行权重之和恒为 1，一项增加多少，其余各项合起来就减少多少，所以要减去 ∂P 的加权平均。被遮住的分数不改变任何权重。",
    ),
    on_paper=(
        r"P_t = \mathrm{softmax}(S_t + M_t), \quad "
        r"M_{t,s} = \begin{cases} 0 & t - W < s \le t \\ -\infty & \text{otherwise} \end{cases}",
        r"\partial S_t = P_t \odot \left( \partial P_t - \sum_s \partial P_{t,s}\, P_{t,s} \right)",
    ),
    on_the_way=exponentials,
    settings={"window": "W"},
    place=("attention", 7),
    torch=(
        "F.softmax(scores.masked_fill(torch.ones_like(scores).triu(1) + torch.ones_like(scores)"
        ".tril(-window) > 0, -torch.inf), dim=-1)"
    ),
    asked=(
        "sliding_window, sliding window attention, local attention, window_size, banded mask, band mask, Mistral, "
        "how far back does attention look, windowed attention, 滑动窗口, 滑动窗口注意力, 局部注意力, 窗口注意力, "
        "带状掩码"
    ),
    notations=(
        "torch.tril(mask) * torch.triu(mask, -W + 1)",
        r"mask(i, j) = \begin{cases} 0 & i - W < j \le i \\ -\infty & \text{otherwise} \end{cases}",
        "i - W < j <= i",
        "(q_idx >= kv_idx) & (q_idx - kv_idx < W)",
    ),
    concepts=(
        Concept(
            "sliding-window attention",
            "滑动窗口注意力",
            ("window_softmax",),
            ("local attention", "attention window", "windowed attention", "局部注意力"),
            is_first=True,
        ),
    ),
    **causal.remarks("key {s} lies outside the window of query {t}", "键 {s} 不在查询 {t} 的窗口内"),
    mistakes=(
        ("saw one key too many: W earlier ones besides its own", "多看了一个键：除自己外还看了 W 个", _one_key_more),
        ("forgot the window: only later keys were masked", "忘了窗口：只遮住了后面的键", _no_window),
        (
            "masked after the softmax, so the row no longer sums to 1",
            "先做 softmax 再遮住，一行之和不再是 1",
            _masked_after,
        ),
    ),
    gradient_mistakes=OWN_WEIGHT_ONLY,
)
