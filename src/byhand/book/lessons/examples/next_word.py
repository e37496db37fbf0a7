"""The next word: the paper GPT's three scores after "no pain no", their probabilities, the loss, and one step.

The smallest whole of learning: the scores themselves are what is learnt. The site's front lets readers move them.
"""

from __future__ import annotations

from functools import partial

import numpy as np

from byhand.book.lessons.backward_steps import backward_steps
from byhand.book.lessons.changes import Choices, Given
from byhand.book.lessons.examples.matrix_core import descend
from byhand.book.lessons.forward_steps import forward_steps, given
from byhand.book.lessons.lesson import Content, Maker, listed
from byhand.book.lessons.roles import told
from byhand.book.words.language import Words
from byhand.engine import Tensor, scope
from byhand.equations.cross_entropy import cross_entropy
from byhand.equations.softmax import softmax
from byhand.tracing.settled import settled_backward
from byhand.tracing.trace import Trace

SCORES, NEXT, RATE = ["-3/20", "-17/100", "39/25"], 2, 1  # the logits of `paper-gpt`, to two places
GIVEN: Given = {"z": SCORES, "y": [NEXT], "rate": RATE}
CHOICES: Choices = {"y": (0, 1, 2)}
ROLES = told(__file__)


@listed(5, "The next word: three scores, and one step of learning", "下一个词：三个分数，学一步")
def lesson(array: Maker, start: Given = GIVEN) -> Content:
    """Probabilities and loss of the scores, the gradient, the scores a step further, and both again."""
    z = Tensor(array([start["z"]]), requires_grad=True, name="z")
    target, rate = Tensor(np.asarray(start["y"], dtype=np.int64), name="y"), array(start["rate"])

    def loss(scores: Tensor) -> Tensor:
        return cross_entropy(scores, target, name="loss")

    trace = Trace.of(partial(loss, z))
    slope = settled_backward(trace, array(1)).by_name
    ((_, new, update),) = descend({"z": z}, slope, rate, ROLES)
    moved = Tensor(new.result.data, name="z'")
    steps = [
        *forward_steps(Trace.of(partial(softmax, z, name="p")), ROLES),
        *forward_steps(trace, ROLES),
        *backward_steps(trace, array(1)),
        *update,
    ]
    with scope("after"):
        steps += forward_steps(Trace.of(partial(softmax, moved, name="p")), ROLES)
        steps += forward_steps(Trace.of(partial(loss, moved)), ROLES)
    intro = Words(
        'After "no pain no" the GPT on paper gives each of its three words a score. The word that follows is "gain". '
        "One step of learning changes the scores so that it becomes more probable.",
        "读完“不见不”之后，纸上的 GPT 给三个词各打一个分。真正的下一个词是“散”。学一步，就是改动分数，使它的概率变大。",
    )
    return intro, steps, (*given(trace), ("rate", start["rate"]))
