"""A whole GPT on paper: four words, four columns, one block; to the loss, every gradient, one AdamW step.

The text is "no pain no gain" (不见不散). The word `no` occurs twice, followed by `pain` once and by `gain` once, so
that no rule about a word alone can be right twice. Each weight has a job that can be read. The columns of the stream
say: it is `no`, it is `pain`, `gain` is due, and the place.

    queries, keys    `no` looks for `pain`, `pain` looks for `no`
    value, W_proj    "I am `pain`" is passed on, and written to the column of `gain`
    MLP              if it is `no` and `pain` was seen, `gain` is due and not `pain`; if it was not seen, the reverse
    head             after `no` comes `pain`, after `pain` comes `no`, and `gain` where it is due

`benchmarks/paper_gpt.py` is the search that chose the numbers.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from byhand.book.finding.source import pointer
from byhand.book.lessons.backward_steps import backward_steps
from byhand.book.lessons.changes import Choices, Given
from byhand.book.lessons.forward_steps import forward_step, forward_steps, given, update_step
from byhand.book.lessons.lesson import Array, Content, Maker, Number, Step, listed, number_text, rows_of
from byhand.book.numbers import closed_form
from byhand.book.words.language import Words
from byhand.config import ModelConfig
from byhand.engine import Tensor, scope
from byhand.equations.cross_entropy import cross_entropy
from byhand.equations.linear import linear
from byhand.model import TinyGPT
from byhand.tracing.settled import settled_backward, settled_trace
from byhand.tracing.trace import Trace

VOCABULARY = (Words("no", "不"), Words("pain", "见"), Words("gain", "散"))
TEXT = (0, 1, 0, 2)
CONFIG = ModelConfig(vocab_size=3, seq_len=3, d_model=4, n_layers=1, n_heads=1, d_ff=2, norm_eps=1e-17)
RATE = 0.01
GIVEN: Given = {
    "text": [*TEXT],
    "W_te": [[1, 0, 0, 0], [0, 1, 0, 0], [0, 0, 1, 0]],
    "W_pe": [[0, 0, 0, 1], [0, 0, 0, 0], [0, 0, 0, -1]],
    "W_Q": [[1, 0, 0, 0], [0, 1, 0, 0], [0, 0, 0, 0], [0, 0, 0, 0]],
    "W_K": [[0, 1, 0, 0], [1, 0, 0, 0], [0, 0, 0, 0], [0, 0, 0, 0]],
    "W_V": [[0, 0, 0, 0], [1, 0, 0, 0], [0, 0, 0, 0], [0, 0, 0, 0]],
    "W_proj": [[0, 0, "1/2", 0], [0, 0, 0, 0], [0, 0, 0, 0], [0, 0, 0, 0]],
    "W_fc": [[1, 1], [0, 0], [1, -1], [0, 0]],
    "b_fc": ["-1/2", "-1/2"],
    "W_out": [[-1, 0, 1, 0], [1, 0, -1, 0]],
    "W_lm": [[0, 1, 0], [1, 0, 0], [0, 0, 1], [0, 0, 0]],
    "rate": RATE,
    "causal": 1,
}
CHOICES: Choices = {"text": (0, 1, 2), "causal": (0, 1)}


def weights_of(start: Given) -> dict[str, Any]:
    """Return the model's parameters, as nested closed forms, for what is given."""
    return {
        "wte": start["W_te"],
        "wpe": start["W_pe"],
        "blocks.0.attn.w_qkv": [[*q, *k, *v] for q, k, v in zip(*(start[f"W_{x}"] for x in "QKV"), strict=True)],
        "blocks.0.attn.b_qkv": [0] * 12,
        "blocks.0.attn.w_proj": start["W_proj"],
        "blocks.0.attn.b_proj": [0] * 4,
        "blocks.0.mlp.w_fc": start["W_fc"],
        "blocks.0.mlp.b_fc": start["b_fc"],
        "blocks.0.mlp.w_out": start["W_out"],
        "blocks.0.mlp.b_out": [0] * 4,
        "lm_head.w": start["W_lm"],
        "lm_head.b": [0] * 3,
    }


WEIGHTS = weights_of(GIVEN)
OPTIMIZER = {"beta1": 0.9, "beta2": 0.999, "eps": 1e-8, "weight_decay": 0.01}


def config_of(start: Given) -> ModelConfig:
    """Return the paper GPT's config, without a mask if that is given."""
    return replace(CONFIG, causal=bool(int(start["causal"])))


@listed(
    20,
    "A GPT on paper: four words to loss, every gradient, one update",
    "纸上的 GPT：从四个词到损失、全部梯度与一次更新",
)
def lesson(array: Maker, start: Given = GIVEN) -> Content:
    """Forward, backward, update, and the loss after it."""
    intro = Words(
        'Three words: no is 0, pain is 1, gain is 2. The text is "no pain no gain". After no comes pain the first '
        "time and gain the second time: only a model that looks back can tell which.",
        "三个词：不是 0，见是 1，散是 2。文本是“不见不散”。第一个“不”后面是“见”，第二个“不”后面是“散”：只有会回看前文的模型才能分清。",
    )
    arrays = {n: array(w) for n, w in weights_of(start).items()}
    text, config, rate = [int(token) for token in start["text"]], config_of(start), closed_form.value(start["rate"])
    model = model_of(config, arrays)
    tokens, targets = np.asarray([text[:-1]]), np.asarray([text[1:]])
    trace = settled_trace(lambda: model.loss(tokens, targets))
    gradients = settled_backward(trace, array(1)).by_name
    steps = [data_step(text), *forward_steps(trace), *backward_steps(trace, array(1))]
    new: dict[str, Any] = {}
    for n, p in model.parameters().items():
        zero = p.data * 0
        step, results = update_step(n, p.data, gradients[n], zero, zero, rate, 1, **OPTIMIZER)
        steps.append(step)
        new[n] = results[0]
    steps += _with_new_head(trace, new["lm_head.w"])
    after = model_of(config, new)
    with scope("after"):
        steps.append(_loss_step(settled_trace(lambda: after.loss(tokens, targets))))
    settings = ("lr", rate), *OPTIMIZER.items(), ("eps of LN", CONFIG.norm_eps)
    tables = [pair for pair in given(trace) if pair[0] not in ("tokens", "targets")]  # the first step makes these
    begin = (("text", str(text)), *tables, *((n, number_text(x)) for n, x in settings))
    return intro, steps, begin


def _with_new_head(trace: Trace, weight: Any) -> list[Step]:
    """Return the logits and the loss with nothing but the LM head's weight updated."""
    kept = ((name, trace.tensor(name).data) for name in ("ln_f", "lm_head.b", "targets"))
    ln_f, bias, targets = (Tensor(data, name=name) for name, data in kept)
    with scope("head"):
        w = Tensor(weight, name="lm_head.w'")
        new = settled_trace(lambda: cross_entropy(linear(ln_f, w, bias, name="logits"), targets, name="loss"))
    return forward_steps(new)


def model_of(config: ModelConfig, arrays: dict[str, np.ndarray]) -> TinyGPT:
    """Return a model that computes with these arrays, which may hold Exacts."""
    model = TinyGPT(config, arrays={n: np.asarray(a, dtype=np.float64) for n, a in arrays.items()})
    for n, p in model.parameters().items():
        p.data = arrays[n]
    return model


def data_step(text: list[int]) -> Step:
    """Return the step that cuts tokens and targets from the text."""
    found = tuple(Number(f"y[{t}]", f"text[{t + 1}]", text[t + 1]) for t in range(len(text) - 1))
    arrays = (
        Array(r"\mathrm{token}", "tokens", np.asarray(text[:-1])),
        Array("y", "targets", np.asarray(text[1:])),
    )
    return Step(
        Words("Batch of next-token pairs", "下一词元预测的批次"),
        "token[t] = text[s + t],  y[t] = text[s + t + 1]",
        pointer("corpus/dataset.py:Corpus.sample_batch"),
        found,
        rows_of(arrays),
        goal=Words(
            "Cut T + 1 tokens out of the text at a random place s (here 0): "
            "the first T are inputs, the last T are targets. Each token is used to predict the next one.",
            "在文本的随机位置 s（这里是 0）截取 T + 1 个词元：前 T 个是输入，后 T 个是目标。每个词元要预测下一个。",
        ),
        why=Words(
            "The text itself holds the answers, so nothing has to be labelled by hand; T + 1 tokens give T predictions.",
            "答案就在文本里，不需要人工标注；T + 1 个词元给出 T 次预测。",
        ),
        inputs=(Array(r"\mathrm{text}", "text", np.asarray(text)),),
        arrays=arrays,
    )


def _loss_step(trace: Trace) -> Step:
    application, _ = trace.made["after.loss"]
    return replace(forward_step(application, trace), title=Words("The loss after the update", "更新之后的损失"))
