"""microgpt's run: its generator, its documents, its weights in its program's order, its steps and samples.

The program is the one of Karpathy's post of 12 February 2026; what its file became later computes the same. Python's
`random` draws everything, from one seed: the documents' order, the weights, the samples.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from random import Random
from typing import Any

import numpy as np

from byhand.architectures import MICROGPT
from byhand.config import ModelConfig
from byhand.engine import no_grad
from byhand.equations.softmax import softmax
from byhand.model import TinyGPT
from byhand.optim import AdamW

NAMES = (
    "velorin", "tamsik", "orabel", "nuvo", "keltra", "mirub", "sondel", "fenwa", "jorvet", "palune", "ishko", "dorena",
)  # fmt: skip
SEED, STD, STEPS, TEMPERATURE = 42, 0.08, 1000, 0.5
ADAM: dict[str, Any] = {"lr": 0.01, "betas": (0.85, 0.99), "eps": 1e-8, "weight_decay": 0.0}
# What the published program prints on these names.
LOSSES = {100: 0.7537, 1000: 0.3660}
DRAWN = (
    "mirub", "palune", "ishko", "ishko", "keltra", "ishko", "ishko", "velorin", "palune", "orabel", "nuvo", "orabel",
    "palune", "ishko", "keltra", "keltra", "nuvo", "velorin", "keltra", "mirub",
)  # fmt: skip


def in_order(config: ModelConfig) -> dict[str, tuple[int, int]]:
    """Return the shapes of the program's matrices, [out, in], in the order in which it draws them."""
    v, t, c, f = config.vocab_size, config.seq_len, config.d_model, config.ff_width
    shapes = {"wte": (v, c), "wpe": (t, c), "lm_head": (v, c)}
    for i in range(config.n_layers):
        shapes |= {f"layer{i}.{name}": (c, c) for name in ("wq", "wk", "wv", "wo")}
        shapes |= {f"layer{i}.fc1": (f, c), f"layer{i}.fc2": (c, f)}
    return shapes


def by_our_names(config: ModelConfig, drawn: Mapping[str, Any]) -> dict[str, Any]:
    """Return the program's matrices as the model's: weights [in, out], of queries, keys and values side by side."""
    arrays = {"wte": drawn["wte"], "wpe": drawn["wpe"], "lm_head.w": drawn["lm_head"].T}
    for i in range(config.n_layers):
        layer, block = f"layer{i}", f"blocks.{i}"
        arrays[f"{block}.attn.w_qkv"] = np.concatenate([drawn[f"{layer}.{name}"] for name in ("wq", "wk", "wv")]).T
        arrays[f"{block}.attn.w_proj"] = drawn[f"{layer}.wo"].T
        arrays[f"{block}.mlp.w_fc"] = drawn[f"{layer}.fc1"].T
        arrays[f"{block}.mlp.w_out"] = drawn[f"{layer}.fc2"].T
    return arrays


class MicroRun:
    """A run on these documents: `losses` trains it, then each call of `sample` draws one more.

    The token of a letter is its place in the sorted alphabet; the one behind the last begins and ends a document.
    """

    def __init__(self, documents: Sequence[str] = NAMES) -> None:
        self.random, self.documents = Random(SEED), list(documents)
        self.random.shuffle(self.documents)
        self.letters = "".join(sorted(set("".join(documents))))
        config = replace(MICROGPT, vocab_size=len(self.letters) + 1)
        drawn = {
            name: np.reshape([self.random.gauss(0, STD) for _ in range(math.prod(shape))], shape)
            for name, shape in in_order(config).items()
        }
        self.model = TinyGPT(config, arrays=by_our_names(config, drawn))

    def losses(self, steps: int = STEPS) -> Iterator[float]:
        """Yield the loss before each step: of one document, in nats; the rate falls linearly to 0 after the last."""
        optimizer, parameters = AdamW(**ADAM), self.model.parameters()
        for step in range(steps):
            ids = self._tokens(self.documents[step % len(self.documents)])
            self.model.zero_grad()
            loss = self.model.loss(ids[None, :-1], ids[None, 1:])
            loss.backward()
            optimizer.lr = ADAM["lr"] * (1 - step / STEPS)
            optimizer.step(parameters)
            yield loss.item()

    def sample(self) -> str:
        """Return a document, drawn letter by letter from the softmax of logits divided by the temperature."""
        end, found = len(self.letters), ""
        while len(found) < self.model.config.seq_len:
            with no_grad():
                logits = self.model.forward_logits(self._tokens(found)[None, :-1])
                p = softmax(logits / TEMPERATURE).data[0, -1]
            (token,) = self.random.choices(range(end + 1), weights=p.tolist())
            if token == end:
                break
            found += self.letters[token]
        return found

    def _tokens(self, document: str) -> Any:
        end = len(self.letters)
        return np.asarray([end, *map(self.letters.index, document), end])[: self.model.config.seq_len + 1]
