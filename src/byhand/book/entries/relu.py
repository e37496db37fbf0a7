"""Below zero, at zero and above."""

from byhand.book.entries.contract import Worked

worked = Worked(
    inputs={"x": [-2, 0, 3]},
    result=[0, 0, 3],
    d_result=[5, 5, 5],
    gradients={"x": [0, 0, 5]},
    note={
        "en": "At exactly zero there is no derivative; the convention is 0.",
        "zh": "在零点处导数不存在，按约定取 0。",
    },
)
