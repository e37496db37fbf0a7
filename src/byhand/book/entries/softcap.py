"""Zero stays zero."""

from byhand.book.entries.contract import Entry

entry = Entry(
    stem="softcap",
    title_zh="logits 软上限",
    meanings_zh={"x": "任意数组"},
    result_zh="压到 -c 与 c 之间的数组",
    inputs={"x": [0, 15]},
    static={"cap": 15.0},
    result=[0, "15*tanh(1)"],
    d_result=[1, 1],
    gradients={"x": [1, "1-tanh(1)*tanh(1)"]},
    note="At zero nothing changes; at the cap tanh(1) of it is left.",
    note_zh="零处不变；等于上限时剩下 tanh(1) 倍。",
    place=("activation", 9),
    asked="logit softcapping, final_logit_softcapping, tanh cap",
)
