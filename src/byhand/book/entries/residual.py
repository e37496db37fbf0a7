"""The sublayer's output is added, and the gradient takes both ways unchanged."""

from byhand.book.entries.contract import Worked

worked = Worked(
    inputs={"x": [[1, 2, 3]], "a": [["1/2", "-1/2", 0]]},
    result=[["3/2", "3/2", 3]],
    d_result=[[1, 2, 3]],
    gradients={"x": [[1, 2, 3]], "a": [[1, 2, 3]]},
    note={
        "en": "The same cotangent goes to the stream and to the sublayer: nothing is divided between them.",
        "zh": "同一份梯度原样传给残差流和子层，而不是在两者之间分摊。",
    },
)
