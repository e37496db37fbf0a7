"""The predicted and the reached loss of `--minutes`' recipe on texts: a Markdown table, a row for each run.

    python benchmarks/loss_on_texts.py TEXT ... [--runs 2:600 3:1650 4:1900]    (from seconds to minutes a run)

A run is a rung of the ladder of `recipe.py`, counted from 1, and its steps, so that its loss depends on no clock.
"""

from __future__ import annotations

import argparse
from dataclasses import replace

from byhand.budget.expectation import bytes_to_count, expected_loss, expected_range, most_passes
from byhand.budget.n_grams import n_gram_losses
from byhand.budget.recipe import MODEL, OPTIM, candidates, finished
from byhand.config import TrainConfig
from byhand.corpus.encoding import corpus_of
from byhand.corpus.texts import open_text
from byhand.flops import block_weights
from byhand.runs.trainer import Trainer

WINDOWS = 1000


def main() -> None:
    """Train, and print a row for each run."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("texts", nargs="+")
    parser.add_argument("--runs", nargs="+", default=["1:600", "3:1650", "4:1900", "5:1900"])
    asked = parser.parse_args()
    print("| text | MB | run | law | n-grams | predicted | reached |\n|---|---|---|---|---|---|---|")
    for name in asked.texts:
        for run in asked.runs:
            rung, steps = (int(number) for number in run.split(":"))
            print(row(name, rung, steps), flush=True)


def row(name: str, rung: int, steps: int) -> str:
    """Return the row of one run."""
    base = TrainConfig(model=MODEL, optim=OPTIM, eval_windows=WINDOWS)
    candidate = candidates(base, (), 1 << 20)[rung - 1]
    train, val = corpus_of(open_text(name)).split(base.data.val_fraction, candidate.model.seq_len)
    weights, tokens = block_weights(candidate.model), steps * candidate.tokens_per_step
    most = most_passes(weights, len(train)) * len(train) / candidate.tokens_per_step
    config = finished(candidate, (), int(most), steps=steps)
    law = expected_loss(weights, tokens, config.model.seq_len, len(train))
    counted = bytes_to_count(weights, tokens, len(train))
    n_grams = n_gram_losses(train.tokens, val.tokens, counted)
    trainer = Trainer(replace(config, eval_interval=0), train, val)
    trainer.prepare()
    while trainer.step < steps:
        trainer.update()
    foretold, reached = expected_range(law, n_grams, counted).loss, trainer.evaluate()
    megabytes, m = (len(train) + len(val)) / 1e6, config.model
    what = f"L{m.n_layers} C{m.d_model}, {tokens / 1e6:.1f} M"
    losses = " | ".join(f"{loss:.3f}" for loss in (law, min(n_grams), foretold, reached))
    return f"| {name} | {megabytes:.1f} | {what} | {losses} |"


if __name__ == "__main__":
    main()
