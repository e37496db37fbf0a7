"""Two tokens from their ids to the loss and the gradient of the logits: two columns, a vocabulary of three."""

import numpy as np

from byhand.book.backward_steps import backward_steps
from byhand.book.example import array
from byhand.book.forward_steps import forward_steps
from byhand.book.sheets import Exercise, Picker
from byhand.book.watch import watch
from byhand.engine import Tensor
from byhand.equations import (
    add_positional,
    attention_scores,
    causal_softmax,
    cross_entropy,
    embedding,
    layer_norm,
    linear,
    merge_heads,
    mix,
    residual,
    split_qkv,
)


def draw(picker: Picker) -> Exercise:
    """Draw tables until both rows have two different numbers, since LayerNorm of two equal ones has no value."""
    while True:
        wte, wpe = picker.integers(-2, 3, 3, 2), picker.integers(0, 1, 2, 2)
        tokens = picker.integers(0, 2, 2)
        rows = [[a + b for a, b in zip(wte[t], p, strict=True)] for t, p in zip(tokens, wpe, strict=True)]
        if all(a != b for a, b in rows):
            break
    targets = picker.integers(0, 2, 2)
    w_qkv, w_lm = picker.integers(-1, 1, 2, 6), picker.integers(-1, 1, 2, 3)
    given = (("wte", wte), ("wpe", wpe), ("W_qkv", w_qkv), ("W_lm", w_lm))
    tables = {n: Tensor(array(a), name=n) for n, a in given}

    def stream() -> Tensor:
        x = add_positional(embedding(tables["wte"], Tensor(np.asarray([tokens])), name="E"), tables["wpe"], name="X")
        qkv = linear(layer_norm(x, eps=0.0, name="H"), tables["W_qkv"], name="QKV")
        q, k, v = split_qkv(qkv, n_heads=1, name="heads")
        weights = causal_softmax(attention_scores(q, k, name="S"), name="P")
        x = residual(x, merge_heads(mix(weights, v, name="Y"), name="A"), name="X'")
        return linear(x, tables["W_lm"], name="Z")

    logits, first = watch(stream)
    z = Tensor(logits.data, requires_grad=True, name="Z")
    loss, second = watch(lambda: cross_entropy(z, Tensor(np.asarray([targets])), name="L"))
    steps = (*forward_steps(first), *forward_steps(second), *backward_steps(loss, second, array(1)))
    return Exercise((("tokens", tokens), ("targets", targets), *given, ("eps", 0)), steps)
