"""A small classifier on byhand's engine: it learns to read noisy digits or letters of 5 x 7 dots in a few seconds.

    python examples/classifier.py                digits: more than 97 % of new pictures are read correctly
    python examples/classifier.py letters        the alphabet: more than 95 %
    python examples/classifier.py --seed 2       other initial weights, other pictures

The network is two linear layers with a ReLU between them; cross-entropy is its loss, and AdamW updates it. All of
these are equations of the GPT in `src/byhand`, so `docs/guides/classifier.md` works the same network on paper.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator

import numpy as np

import byhand as bh
from byhand.book.explain.explainer import explained
from byhand.book.explain.text import text
from byhand.cli.terminal.guard import open_streams
from byhand.equations.cross_entropy import cross_entropy
from byhand.equations.linear import linear
from byhand.equations.relu import relu
from byhand.tracing.trace import Trace
from glyphs import ALPHABETS, PIXELS, Alphabet, shown

HIDDEN = 96  # units between the two layers
NOISE = 0.05  # probability that a pixel is flipped
BATCH, STEPS, RATE = 64, 2000, 0.01  # the learning rate falls from RATE to 0 in a straight line
HELD_OUT = 200  # pictures of each class to test with; the network never trains on them

Parameters = dict[str, bh.Tensor]


def initial(classes: int, rng: np.random.Generator) -> Parameters:
    """Return the parameters before training: weights of a size that keeps numbers at one scale, biases of 0."""
    arrays = {
        "W_1": rng.normal(0, np.sqrt(2 / PIXELS), (PIXELS, HIDDEN)),
        "b_1": np.zeros(HIDDEN),
        "W_2": rng.normal(0, np.sqrt(1 / HIDDEN), (HIDDEN, classes)),
        "b_2": np.zeros(classes),
    }
    return {name: bh.Tensor(array, requires_grad=True, name=name) for name, array in arrays.items()}


def logits(p: Parameters, pictures: np.ndarray) -> bh.Tensor:
    """Return a score for each class: pictures (N, pixels) -> (N, classes)."""
    a = linear(bh.Tensor(pictures, name="X"), p["W_1"], p["b_1"], name="a")
    return linear(relu(a, name="h"), p["W_2"], p["b_2"], name="z")


def loss(p: Parameters, pictures: np.ndarray, labels: np.ndarray) -> bh.Tensor:
    """Return the mean cross-entropy in nats."""
    return cross_entropy(logits(p, pictures), bh.Tensor(labels, name="y"), name="loss")


def train(p: Parameters, alphabet: Alphabet, steps: int, rng: np.random.Generator) -> Iterator[tuple[int, float]]:
    """Update the parameters on new pictures at each step; yield the step's number and its loss."""
    optimizer = bh.AdamW(weight_decay=0.0)
    for step in range(steps):
        labels = rng.integers(len(alphabet.names), size=BATCH)
        value = loss(p, alphabet.draw(labels, NOISE, rng), labels)
        for tensor in p.values():
            tensor.grad = None
        value.backward()
        optimizer.lr = RATE * (1 - step / steps)
        optimizer.step(p)
        yield step + 1, value.item()


def read(p: Parameters, pictures: np.ndarray) -> np.ndarray:
    """Return the class with the largest score for each picture."""
    with bh.no_grad():
        return logits(p, pictures).data.argmax(axis=1)


def confusion(labels: np.ndarray, answers: np.ndarray, names: str) -> str:
    """Return a table that counts how often each class (row) was read as each class (column)."""
    counts = np.zeros((len(names), len(names)), dtype=int)
    np.add.at(counts, (labels, answers), 1)
    width = len(str(HELD_OUT)) + 1
    head = " " + "".join(f"{name:>{width}}" for name in names)
    rows = (name + "".join(f"{n or '.':>{width}}" for n in row) for name, row in zip(names, counts, strict=True))
    return "\n".join([head, *rows])


def one_number(p: Parameters, picture: np.ndarray, label: int) -> str:
    """Return the arithmetic of the right class's score for one picture, and of a gradient of one weight behind it."""
    trace = Trace.of(lambda: loss(p, picture[None], np.array([label])))
    value = explained(trace.answer("z", (0, label)), trace)
    busiest, gradients = int(trace.tensor("h").data.argmax()), trace.backward()
    slope = explained(gradients.answer("W_2", (busiest, label)), gradients)
    return f"{text(value, shown=5)}\n\n{text(slope)}"


def main() -> None:
    """Train, then show how well the network reads pictures that it has not seen."""
    parser = argparse.ArgumentParser(description="Train a small classifier of digits or letters.")
    parser.add_argument("alphabet", nargs="?", choices=list(ALPHABETS), default="digits", help="what to read")
    parser.add_argument("--steps", type=int, default=STEPS, help=f"number of updates (default: {STEPS})")
    parser.add_argument("--seed", type=int, default=1, help="of the initial weights and of all pictures (default: 1)")
    open_streams()  # UTF-8 on every machine
    asked = parser.parse_args()
    if asked.steps < 0 or asked.seed < 0:
        parser.error("--steps and --seed cannot be negative")
    alphabet, names = ALPHABETS[asked.alphabet], ALPHABETS[asked.alphabet].names
    starting, training, testing = np.random.default_rng(asked.seed).spawn(3)

    p = initial(len(names), starting)
    for step, value in train(p, alphabet, asked.steps, training):
        if step == 1 or step % 250 == 0:
            print(f"step {step:4}  loss {value:.3f}")

    labels = np.repeat(np.arange(len(names)), HELD_OUT)
    pictures = alphabet.draw(labels, NOISE, testing)
    answers = read(p, pictures)
    right, best = (f"{100 * (found == labels).mean():.1f} %" for found in (answers, alphabet.nearest(pictures)))
    print(f"\n{right} of {len(labels):,} new pictures read correctly; by the nearest clean picture: {best}")
    print("\nrows: what was drawn; columns: what was read\n" + confusion(labels, answers, names))
    one = int((answers != labels).argmax())  # the first that was read wrongly, if any
    print(f"\na picture of {names[labels[one]]}, read as {names[answers[one]]}:\n\n{shown(pictures[one])}\n")
    print(one_number(p, pictures[one], int(labels[one])))


if __name__ == "__main__":
    main()
