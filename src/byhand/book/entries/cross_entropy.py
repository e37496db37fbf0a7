"""Logarithms as logits make fractions of the probabilities: 5/8 and 1/4 for the two targets."""

from byhand.book.entries.contract import Entry
from byhand.book.practice.catalogue import slips
from byhand.book.practice.edits import Asked, first, negated, nth, over
from byhand.book.words.language import Words
from byhand.engine.terms import Term, function, number, ratio, total


def first_sources(inputs, of):
    """Return whether an index is that of a target's logit."""
    targets = inputs[1]
    return lambda index: index[-1] == targets[index[:-1]]


def _probabilities(term: Term, at: Asked) -> Term:
    losses, count = term.parts
    return ratio(total(function("exp", negated(loss, at)) for loss in losses.parts), count)


def probabilities(inputs, result):
    """Return the probabilities, and minus the logarithm of each target's."""
    import numpy as np  # `where` reads this file without it

    z, y = inputs
    e = np.exp(z - z.max(axis=-1, keepdims=True))
    p = e / e.sum(axis=-1, keepdims=True)
    of_targets = np.take_along_axis(p, y[..., None], axis=-1)
    return ("p", p), (r"-\ln p_{n,y_n}", -np.log(of_targets))


entry = Entry(
    stem="cross_entropy",
    title_zh="交叉熵",
    meanings_zh={"logits": "每个位置一行 logits", "targets": "实际出现的下一个词元"},
    result_zh="平均损失，单位奈特",
    inputs={"logits": [[0, "log(2)", "log(5)"], [0, 0, "log(2)"]], "targets": [2, 0]},
    result="(log(8/5)+log(4))/2",
    d_result=1,
    gradients={"logits": [["1/16", "1/8", "-3/16"], ["-3/8", "1/8", "1/4"]]},
    note="The gradient is the probabilities minus the one-hot targets, over N = 2; each row sums to zero.",
    note_zh="梯度等于概率减去独热目标，再除以 N = 2；每一行之和为零。",
    goal=Words(
        "Measure how badly the model predicted the right token.",
        "衡量模型对正确的词元预测得有多差。",
    ),
    why=Words(
        "−ln p is 0 for p = 1 and grows without bound as p approaches 0: p = 0.01 costs 4.6 nats, the unit of ln. "
        "Being a mean, the loss does not grow with the number of predictions.",
        "p = 1 时 −ln p 为 0；p 越接近 0，它越大，没有上限：p = 0.01 时为 4.6 奈特（ln 的单位）。取了平均，损失就不随预测的个数增大。",
    ),
    why_back=Words(
        "A nudge of any logit raises the loss by the nudge times its probability; for the target's logit, subtract the nudge itself. "
        "Together this is prediction minus target; the mean divides it by N.",
        "任何一个 logit 增大一点点，损失的增量是这一点点乘以它的概率；若它是目标的 logit，还要再减去这一点点。合起来就是预测减目标，取平均时再除以 N。",
    ),
    on_paper=(
        r"L = \frac{1}{N} \sum_n -\ln p_{n,y_n}, \quad p_{n,v} = \frac{e^{z_{n,v}}}{\sum_u e^{z_{n,u}}}",
        r"\partial z_{n,v} = \frac{\partial L}{N} \left( p_{n,v} - [v = y_n] \right)",
    ),
    saved=("p",),
    on_the_way=probabilities,
    place=("learning", 1),
    torch="F.cross_entropy(logits, targets)",
    asked=(
        "nn.CrossEntropyLoss, F.cross_entropy, nll_loss, NLLLoss, log_softmax, log loss, softmax loss, "
        "why the logarithm, gradient of softmax and cross entropy, p minus y, perplexity, 对数损失, 为什么取对数, "
        "softmax 加交叉熵的梯度, 困惑度"
    ),
    notations=(
        r"L = \frac{1}{N} \sum_n \ell_n",
        r"\ell_n = -\log(p_{n,y_n})",
        r"-\log p_y",
        "Loss = -sum y_true log(y_pred)",
        "-sum y log(p)",
        r"L = \frac{1}{N} \sum_n -\log(\mathrm{softmax}(logits_n)[y_n])",
        "dL/dOutput = y_pred - y_true",
        "p - onehot(y)",
        "p - y",
        r"\hat{y} - y",
        "y_hat - y",
    ),
    first_sources=first_sources,
    mistakes=slips(
        "cross_entropy.forward",
        sum_not_mean=first,
        log_base_2=over(function("log", number(2))),
        log_base_10=over(function("log", number(10))),
        no_minus=negated,
        no_log=_probabilities,
        log_of_mean=lambda term, at: negated(function("log", _probabilities(term, at)), at),
    ),
    part_mistakes={
        "loss": slips(
            "cross_entropy.forward",
            log_base_2=over(function("log", number(2))),
            log_base_10=over(function("log", number(10))),
            no_minus=negated,
            no_log=lambda term, at: function("exp", negated(term, at)),
        )
    },
    gradient_mistakes=slips(
        "cross_entropy.vjp",
        gradient_of_sum=nth(1, first),
        no_target=nth(1, nth(0, first)),
        difference_reversed=negated,
    ),
)
