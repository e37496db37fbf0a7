"""The run in the picture `loss-curve`: the preset `nano` on Python's own library, with samples.

    python benchmarks/loss_curve.py docs/build/pictures/loss_curve.json    (two minutes)

The JSON holds the settings, versions, the loss on the validation windows at some steps, and short samples at fewer.
Another version of Python has another library, so its numbers differ a little.
"""

from __future__ import annotations

import argparse
import json
import platform
import sys
from pathlib import Path

import numpy as np

from byhand import __version__
from byhand.cli.arguments.presets import preset
from byhand.corpus.encoding import corpus_of
from byhand.corpus.texts import open_text
from byhand.generation import generate
from byhand.runs.trainer import Trainer
from byhand.runtimes.sampling import Sampling

PRESET, TEXT = "nano", "python-stdlib"
STAGES = (0, 50, 200, 1000, 2000)
PROMPT, LENGTH, SAMPLING = "def ", 44, Sampling(temperature=0.8, seed=1)


def main() -> int:
    """Train, measure and sample; write the JSON."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("out", type=Path)
    out = parser.parse_args().out
    config, text = preset(PRESET), open_text(TEXT)
    train, val = corpus_of(text).split(config.data.val_fraction, config.model.seq_len)
    trainer = Trainer(config, train, val)
    trainer.prepare()
    losses, samples = {}, {}
    while True:
        if is_measured(trainer.step):
            losses[trainer.step] = round(trainer.evaluate(), 3)
        if trainer.step in STAGES:
            samples[trainer.step] = sample(trainer)
            print(trainer.step, losses[trainer.step], repr(samples[trainer.step]), file=sys.stderr)
        if trainer.step == config.steps:
            break
        trainer.update()
    found = {
        "command": f"byhand train --preset {PRESET} --data {TEXT} --seed {config.seed}",
        "text_bytes": len(text.content),
        "text_sha256": text.sha256,
        "runtime": trainer.choice.runtime.name,
        "versions": {"byhand": __version__, "python": platform.python_version(), "numpy": np.__version__},
        "prompt": PROMPT,
        "sampling": {"temperature": SAMPLING.temperature, "seed": SAMPLING.seed},
        "losses": losses,
        "samples": samples,
    }
    out.write_text(json.dumps(found, ensure_ascii=False, indent=1) + "\n", encoding="utf-8", newline="\n")
    return 0


def is_measured(step: int) -> bool:
    """Return whether to keep the loss of this step: more often where it falls fast."""
    return step % 5 == 0 if step <= 50 else step % 25 == 0 if step <= 400 else step % 100 == 0


def sample(trainer: Trainer) -> str:
    """Return the bytes that follow the prompt as text, a dot for each that is not printable ASCII."""
    written = generate(trainer.model, PROMPT.encode(), LENGTH, SAMPLING)
    return "".join(chr(byte) if 32 <= byte < 127 else "⏎" if byte == 10 else "·" for byte in written)


if __name__ == "__main__":
    raise SystemExit(main())
