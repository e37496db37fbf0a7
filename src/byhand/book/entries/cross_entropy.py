"""Logarithms as logits make fractions of the probabilities: 5/8 and 1/4 for the two targets."""

from byhand.book.entries.contract import Worked

worked = Worked(
    inputs={"logits": [[0, "log(2)", "log(5)"], [0, 0, "log(2)"]], "targets": [2, 0]},
    result="(log(8/5)+log(4))/2",
    d_result=1,
    gradients={"logits": [["1/16", "1/8", "-3/16"], ["-3/8", "1/8", "1/4"]]},
    note={
        "en": "The gradient is the probabilities minus the one-hot targets, over N = 2; each row sums to zero.",
        "zh": "梯度等于概率减去独热目标，再除以 N = 2；每一行之和为零。",
    },
)
