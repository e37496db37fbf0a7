"""Logarithms make fractions of the tanh: it is 3/5 at log 2 and 4/5 at log 3."""

from byhand.book.entries.contract import Entry
from byhand.book.practice.catalogue import slips
from byhand.book.practice.edits import Asked, cotangent, nth, over, rest
from byhand.book.words.glossary import Concept
from byhand.book.words.language import Words
from byhand.engine.terms import Term, number, product


def _uncapped(term: Term, at: Asked) -> Term | None:
    """Return the arithmetic with the tanh of x itself."""
    return nth(1, nth(0, lambda inside, at: inside.parts[0]))(term, at)


def _cut(term: Term, at: Asked) -> Term:
    """Return the clipped number."""
    cap = at.static["cap"]
    return number(min(max(at.read(0, "x").value, -cap), cap))


entry = Entry(
    stem="softcap",
    title_zh="logits 软上限",
    meanings_zh={"x": "任意数组"},
    result_zh="压到 -c 与 c 之间的数组",
    inputs={"x": [0, "15*log(2)", "15*log(3)", "-(15*log(2))"]},
    static={"cap": 15.0},
    result=[0, 9, 12, -9],
    d_result=[1, 1, 1, 1],
    gradients={"x": [1, "16/25", "9/25", "16/25"]},
    note="Near 0 nothing changes. The closer y comes to the cap 15, the smaller the slope.",
    note_zh="0 附近几乎不变；y 越接近上限 15，斜率越小。",
    goal=Words(
        "Keep each logit between −c and c.",
        "让每个 logit 保持在 −c 与 c 之间。",
    ),
    why=Words(
        "Small logits pass nearly unchanged, large ones are bent towards the cap, and their order is kept. "
        "The softmax can then never become fully certain, and no logit grows without bound in training.",
        "小的 logit 几乎不变，大的被压向上限，大小次序不变。这样 softmax 的概率不会无限接近 0 或 1，训练中也没有哪个 logit 会无限增大。",
    ),
    why_back=Words(
        "The curve has slope 1 at zero and flattens towards the cap, so a logit near the cap passes hardly any derivative back.",
        "曲线在零处斜率为 1，越接近上限越平，所以接近上限的 logit 几乎不传回导数。",
    ),
    place=("learning", 0),  # between the LM head and the loss
    torch="cap * torch.tanh(x / cap)",
    asked=(
        "final_logit_softcapping, attn_logit_softcapping, logits_soft_cap, tanh cap, cap the logits, soft capping, "
        "Gemma 2 softcap, 软截断, 限制 logits, logits 太大"
    ),
    saved=(r"\tanh \frac{x}{c}",),
    settings={"cap": "c"},
    notations=(
        "cap * tanh(logits / cap)",
        r"\text{soft\_cap} \cdot \tanh(\text{logits} / \text{soft\_cap})",
        "logits = logits / cap; logits = torch.tanh(logits); logits = logits * cap",
    ),
    concepts=(
        Concept(
            "logit softcapping",
            "logits 软上限",
            ("softcap",),
            ("softcap", "soft cap", "softcapping", "soft-capping", "软上限"),
            is_first=True,
        ),
    ),
    mistakes=slips("softcap.forward", not_multiplied=rest, not_divided=_uncapped, cut_off=_cut),
    gradient_mistakes=slips(
        "softcap.vjp",
        unchanged=cotangent,
        no_square=nth(1, nth(1, nth(0, lambda square, at: square.parts[0]))),
        divided_again=lambda term, at: over(number(at.static["cap"], "c"))(product(term.parts), at),
    ),
)
