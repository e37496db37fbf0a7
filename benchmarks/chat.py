"""Time to the first token of each answer of a conversation: rereading all of it, and reusing the last answer's cache.

    python benchmarks/chat.py [--turns 5] [--question 20] [--answer 160] [--runtime loops] [--repeats 5]

The model is random: 8 layers, width 512, rotary positions, bytes. The least time of the repeats counts; the first
conversation of each kind, which compiles and makes plans, does not.
"""

from __future__ import annotations

import argparse
from time import perf_counter

import numpy as np

import byhand as bh
from byhand.generation import Engine, Sampling, Stream


def conversation(
    engine: Engine, questions: list[list[int]], answer: int, keeps: bool
) -> tuple[list[float], list[int]]:
    """Return the seconds to the first token of each answer, and the tokens before each."""
    engine.forget()
    text, seconds, lengths = [], [], []
    for question in questions:
        stream = engine.submit(Stream([*text, *question], answer, Sampling(0.0), keeps=keeps))
        begun = perf_counter()
        engine.step(1)
        seconds.append(perf_counter() - begun)
        lengths.append(stream.prompt)
        while engine.running:
            engine.step()
        text = stream.tokens
    return seconds, lengths


def main() -> None:
    """Print a table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name, value in (("turns", 5), ("question", 20), ("answer", 160), ("repeats", 5)):
        parser.add_argument(f"--{name}", type=int, default=value)
    parser.add_argument("--runtime", default="loops")
    options = parser.parse_args()
    length = options.turns * (options.question + options.answer)
    config = bh.ModelConfig(seq_len=length, d_model=512, n_layers=8, n_heads=8, positions="rotary")
    engine = Engine(bh.TinyGPT(config, seed=1), runtime=options.runtime, moves=True)  # as `byhand chat` does
    rng = np.random.default_rng(1)
    questions = rng.integers(0, 256, (options.turns, options.question)).tolist()
    least, lengths = {}, []
    for keeps in (False, True):
        timed = [conversation(engine, questions, options.answer, keeps) for _ in range(1 + options.repeats)]
        least[keeps], lengths = np.min([seconds for seconds, _ in timed[1:]], axis=0), timed[0][1]
    print("turn  tokens  anew ms  kept ms")
    for turn, row in enumerate(zip(lengths, least[False], least[True], strict=True)):
        tokens, anew, kept = row
        print(f"{turn + 1:4}  {tokens:6}  {1000 * anew:7.1f}  {1000 * kept:7.1f}")


if __name__ == "__main__":
    main()
