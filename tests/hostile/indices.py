"""What `explain` is asked for: paths and indices of any length, prompts of any bytes, depths of any size."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from random import Random

import numpy as np

from byhand import ModelConfig, TinyGPT
from byhand.book.explain.explainer import Explainer
from byhand.book.explain.text import text
from byhand.cli.learn.explain import read_prompt
from byhand.tracing.targets import parse_target
from hostile.outcome import accepted
from hostile.words import damaged, hostile

TARGETS = [
    *("logits[0,1,101]", "blocks.0.attn.weights[0,1,1,0]", "lm_head.w[3,97]", "loss", "d blocks.0.attn.q[0,0,1,2]"),
    *("lm_head.w.update[0,101]", "wte.m[84,3]", "wte[84,3]", "ln_f[0,1,3]", "∂loss/∂wpe[0,0]"),
]


@cache
def explainer() -> Explainer:
    model = TinyGPT(ModelConfig(seq_len=4, d_model=4, n_layers=1, n_heads=2), seed=3)
    return Explainer(model, [[84, 111]], [[111, 32]])


def attack(seed: int, folder: Path) -> None:
    rng = Random(seed)
    target = damaged(rng, rng.choice(TARGETS)) if rng.random() < 0.8 else hostile(rng)
    prompt, targets = hostile(rng), rng.choice((None, hostile(rng)))
    read = accepted(prompt, lambda: read_prompt(prompt, targets, rng.random() < 0.5))
    assert read is None or all(0 <= token < 256 for token in read[0][0])
    parsed = accepted(target, lambda: parse_target(target))
    if not parsed or not parsed[0]:
        return
    name, index, grad = parsed
    depth, terms = rng.choice((1, 1, 2, 3)), rng.choice((1, 8))
    explanation = accepted(target, lambda: explainer().explain(name, index, grad, depth, terms))
    if explanation is not None:
        tensor = None if name not in explainer().names() or ("." in name and name.rpartition(".")[2] in (
            "m", "v", "theta", "update")) else explainer().trace.tensor(name)  # fmt: skip
        assert tensor is None or np.ndim(tensor.data) == len(index)
        accepted(target, lambda: (text(explanation, rng.choice(("en", "zh")), terms), explanation.as_json()))
