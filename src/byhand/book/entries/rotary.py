"""The same vector (3, 0, 4, 1) at positions 1 and 2: its pairs turn by 1 and 1/2 radian a position."""

import math

from byhand.book.entries.contract import Entry
from byhand.book.numbers import arithmetic
from byhand.book.practice.catalogue import slips
from byhand.book.practice.edits import Asked, within
from byhand.book.words.glossary import Concept
from byhand.book.words.language import Note, Words
from byhand.engine.arrays import start_of
from byhand.engine.terms import Term, function, number, product, total
from byhand.equations.rotary import terms


def remark(term, index):
    """Return the note about a column's pair and its angle."""
    column = index[-1]
    if len(term.parts) < 2:
        return Note(
            f"column {column} stays: only the first R columns of a head are turned.",
            f"第 {column} 列不变：每个头只旋转前 R 列。",
            "unturned",
            {"column": column},
        )
    x, other = term.parts
    other = other.parts[0] if other.op == "negative" else other
    position, *steps = x.parts[1].parts[0].parts
    i, j = sorted((column, other.parts[0].source[1][-1]))
    label, value = " ".join(step.label for step in steps), math.prod(step.value for step in steps)
    angle = arithmetic.decimal(value)
    return Note(
        f"columns {i} and {j} are a pair, which turns by {label} = {angle} radians a position; this is position {position.value:g}.",
        f"第 {i}、{j} 列是一对，每个位置转 {label} = {angle} 弧度；这里是位置 {position.value:g}。",
        "pair",
        {"i": i, "j": j, "angle": value, "position": position.value},
    )


def _other_sine(term: Term, at: Asked) -> Term | None:
    """Rotate in the other direction: the sine has the other sign."""
    if len(term.parts) < 2:
        return None
    x, other = term.parts
    return total((x, other.parts[0] if other.op == "negative" else function("negative", other)))


def _worked(later: int, at: Asked, **changed: str) -> Term | None:
    """Return the element's arithmetic at another position, or with other settings."""
    if at.index[-1] >= at.static["width"]:
        return None
    return terms(at.index, (at.inputs[0], start_of(at.inputs, 1, at.index) + later), None, **(at.static | changed))


def _other_pairing(term: Term, at: Asked) -> Term | None:
    own = at.static.get("pairing", "halves")
    return _worked(0, at, pairing="neighbours" if own == "halves" else "halves")


def _in_degrees(angle: Term, at: Asked) -> Term:
    return product((*angle.parts, number(math.pi / 180, "π/180")), "a")


entry = Entry(
    stem="rotary",
    title_zh="旋转位置编码（RoPE）",
    meanings_zh={"x": "查询或键", "start": "第一个位置之前已有的位置数；不给则为 0"},
    result_zh="按位置旋转后的查询或键",
    inputs={"x": [[3, 0, 4, 1], [3, 0, 4, 1]], "start": 1},
    static={"base": 4.0, "width": 4},
    result=[
        ["3*cos(1)-4*sin(1)", "-sin(1/2)", "4*cos(1)+3*sin(1)", "cos(1/2)"],
        ["3*cos(2)-4*sin(2)", "-sin(1)", "4*cos(2)+3*sin(2)", "cos(1)"],
    ],
    d_result=[[1, 0, 0, 0], [0, 0, 0, 1]],
    gradients={"x": [["cos(1)", 0, "-sin(1)", 0], [0, "sin(1)", 0, "cos(1)"]]},
    note=(
        "Columns 0 and 2 are the pair (3, 4): its length stays 5 at every position. "
        "Columns 1 and 3 turn half as fast, since 4 to the power −2/4 is 1/2."
    ),
    note_zh="第 0、2 列配成一对 (3, 4)，在任何位置长度都是 5。第 1、3 列只转它们的一半，因为 4 的 −2/4 次方是 1/2。",
    goal=Words(
        "Turn each query and key by its position, so that a score depends on how far apart two tokens stand.",
        "按位置旋转每个查询和键，使分数取决于两个词元相隔多远。",
    ),
    why=Words(
        "The dot product of two vectors turned by the angles a and b depends on a − b alone: "
        "on the distance, wherever the two stand. A turn changes no length and needs no parameter.",
        "两个向量分别转过角 a 与 b，点积只随 a − b 变化，也就是只随距离变化，与两者位于文中何处无关。旋转不改变长度，也不需要任何参数。",
    ),
    why_back=Words(
        "The transpose of a rotation is the rotation back, so the derivative is turned by the opposite angle: "
        "only the sign of the sine changes.",
        "旋转矩阵的转置就是反向旋转，所以导数按相反的角度转回去：只有正弦的符号改变。",
    ),
    on_paper=(
        r"y_{t,i} = x_{t,i} \cos a_t - x_{t,j} \sin a_t, \quad y_{t,j} = x_{t,j} \cos a_t + x_{t,i} \sin a_t, "
        r"\quad a_t = (\mathrm{start} + t)\, b^{-2p/R}",
        r"\partial x_{t,i} = \partial y_{t,i} \cos a_t + \partial y_{t,j} \sin a_t, \quad "
        r"\partial x_{t,j} = \partial y_{t,j} \cos a_t - \partial y_{t,i} \sin a_t",
    ),
    without=((r"(\mathrm{start} + t)", "t"),),
    saved=(r"\cos a_t", r"\sin a_t"),
    settings={"base": "b", "width": "R"},
    place=("attention", 3),
    asked=(
        "RoPE, apply_rotary_pos_emb, rotate_half, apply_rotary_emb, freqs_cis, precompute_freqs_cis, inv_freq, "
        "rotary_emb, LlamaRotaryEmbedding, rotary positional encoding, cos_cached, view_as_complex, "
        "rotate queries and keys, how does RoPE work, why rotate, 旋转位置嵌入, 旋转编码, 旋转式位置编码, "
        "旋转位置编码的原理, 为什么旋转"
    ),
    notations=(
        r"f(x, m) = x e^{i m \theta}",
        r"q_m = R_{\Theta,m} W_q x_m",
        r"\theta_i = 10000^{-2i/d}",
        "x * cos + rotate_half(x) * sin",
        "torch.polar(ones, freqs)",
    ),
    concepts=(
        Concept(
            "rotary position embedding",
            "旋转位置编码",
            ("rotary",),
            ("RoPE", "rotary embedding", "rotary positions", "旋转位置嵌入"),
            is_first=True,
        ),
    ),
    remark=remark,
    mistakes=slips(
        "rotary.forward",
        other_way=_other_sine,
        other_pairing=_other_pairing,
        from_1=lambda term, at: _worked(1, at),
        degrees=within(_in_degrees, "a"),
    ),
    gradient_mistakes=slips("rotary.vjp", turned_forward=_other_sine),
)
