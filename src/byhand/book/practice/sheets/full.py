"""A whole GPT of one block: two tokens from their ids to the loss and the gradient of the logits.

Two columns, one head, a vocabulary of three, no biases. LayerNorm of two columns gives 1, −1 or −1, 1; each token
gets a different one, so that attention can tell them apart.
"""

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from byhand.book.lessons.backward_steps import backward_steps
from byhand.book.lessons.forward_steps import forward_steps
from byhand.book.lessons.lesson import Step
from byhand.book.numbers.closed_form import array
from byhand.book.practice.sheets import NONZERO, Drawn, Picker
from byhand.book.words.language import Said, Words, say
from byhand.engine import Tensor
from byhand.equations.add_positional import add_positional
from byhand.equations.attention_scores import attention_scores
from byhand.equations.causal_softmax import causal_softmax
from byhand.equations.cross_entropy import cross_entropy
from byhand.equations.embedding import embedding
from byhand.equations.gelu import gelu
from byhand.equations.layer_norm import layer_norm
from byhand.equations.linear import linear
from byhand.equations.merge_heads import merge_heads
from byhand.equations.mix import mix
from byhand.equations.residual import residual
from byhand.equations.split_qkv import split_qkv
from byhand.tracing.settled import settled_trace

SPREAD = 0.1  # least difference of the last token's two weights, and of the columns that a LayerNorm reads
HALVES = ("-1/2", "1/2", -1, 1)  # small, so the sublayers do not dominate the stream


def draw(picker: Picker) -> Drawn:
    """Draw until every LayerNorm has values, the first makes different rows, and the scores tell them apart."""
    while True:
        wte, wpe = picker.integers(-2, 3, 3, 2), picker.integers(0, 1, 2, 2)
        tokens = picker.integers(0, 2, 2)
        targets = picker.integers(0, 2, 2)
        (a, b), (c, d) = ((x + y for x, y in zip(wte[t], p, strict=True)) for t, p in zip(tokens, wpe, strict=True))
        if (a - b) * (c - d) >= 0:
            continue
        shapes = {"W_qkv": (2, 6), "W_proj": (2, 2), "W_fc": (2, 2), "W_out": (2, 2), "W_lm": (2, 3)}
        weights = {n: picker.several(NONZERO if n in ("W_qkv", "W_lm") else HALVES, *s) for n, s in shapes.items()}
        given = (("W_te", wte), ("W_pe", wpe), *weights.items())
        tables = {n: Tensor(array(x), name=n) for n, x in given}
        first = settled_trace(lambda tables=tables, tokens=tokens: _logits(tables, tokens))
        last = first.tensor("P").data[0, 0, 1]
        columns = np.concatenate([first.tensor(n).data for n in ("X'", "X''")])
        if abs(last[0] - last[1]) > SPREAD and np.abs(columns[..., 0] - columns[..., 1]).min() > SPREAD:
            break
    z = Tensor(first.result.data, requires_grad=True, name="Z")
    second = settled_trace(lambda: cross_entropy(z, Tensor(np.asarray([targets]), name="y"), name="L"))
    steps = (*forward_steps(first), *forward_steps(second), *backward_steps(second, array(1)))
    return (("token", tokens), ("y", targets), *given, ("eps of LN", 0)), tuple(_asked(steps))


def _logits(tables: dict[str, Tensor], tokens: list[int]) -> Tensor:
    x = add_positional(
        embedding(tables["W_te"], Tensor(np.asarray([tokens]), name="token"), name="E"), tables["W_pe"], name="X"
    )
    qkv = linear(layer_norm(x, eps=0.0, name="H"), tables["W_qkv"], name="QKV")
    q, k, v = split_qkv(qkv, n_heads=1, name="heads")
    weights = causal_softmax(attention_scores(q, k, name="S"), name="P")
    mixed = merge_heads(mix(weights, v, name="Y"), name="Y_heads")
    x = residual(x, linear(mixed, tables["W_proj"], name="A"), name="X'")
    hidden = gelu(linear(layer_norm(x, eps=0.0, name="H'"), tables["W_fc"], name="F"), name="G")
    x = residual(x, linear(hidden, tables["W_out"], name="M"), name="X''")
    return linear(layer_norm(x, eps=0.0, name="H''"), tables["W_lm"], name="Z")


def _asked(steps: tuple[Step, ...]) -> Iterator[Step]:
    """Yield the steps that ask for numbers; the formula of a step that only moves numbers precedes the next one."""
    moved: list[Said] = []
    for step in steps:
        if not step.numbers:
            names = f"→ {', '.join(say(name, 'en') for name, _ in step.results)}"
            moved += [step.formula, Words(names, names)]
            continue
        formulas = [*moved, step.formula]
        en, zh = ("\n".join(say(formula, lang) for formula in formulas) for lang in ("en", "zh"))
        yield replace(step, formula=Words(en, zh))
        moved = []
