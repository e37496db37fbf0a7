"""The cost in loss of weights of fewer bits: the figures of the page about small weights.

    byhand train --data python-stdlib --preset tiny --out runs/tiny
    byhand train --data python-stdlib --preset nano --out runs/nano
    byhand train --data python-stdlib --preset nano --n-embd 256 --lr 1e-3 --out runs/wider
    python benchmarks/small_weights.py docs/guides/small-weights.json runs/tiny runs/nano runs/wider

Each model predicts the last bytes of its text, which it was not trained on, with each kind of
weights, as `byhand eval --weights` does.
"""

from __future__ import annotations

import argparse
import json
import platform
import sys
from pathlib import Path
from typing import get_args

from byhand import __version__
from byhand.corpus.encoding import corpus_of
from byhand.corpus.texts import open_text
from byhand.evaluate import evaluate
from byhand.formats.names import Weights
from byhand.runs import checkpoint

TEXT, MOST = "python-stdlib", 1 << 17  # bytes


def main() -> int:
    """Evaluate and write the JSON."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("out", type=Path)
    parser.add_argument("runs", type=Path, nargs="+")
    asked = parser.parse_args()
    whole, found = corpus_of(open_text(TEXT)), []
    _, text = whole.split(MOST / len(whole), 1)
    for run in asked.runs:
        model = checkpoint.load(run, moments=False).model()
        config = model.config
        losses = {kind: round(evaluate(model, text, weights=kind).loss, 4) for kind in get_args(Weights)}
        found.append({"n_layers": config.n_layers, "d_model": config.d_model, "losses": losses})
        print(run, losses, file=sys.stderr)
    versions = {"byhand": __version__, "python": platform.python_version()}
    said = {"text": TEXT, "bytes": MOST, "versions": versions, "models": found}
    asked.out.write_text(json.dumps(said, indent=1) + "\n", encoding="utf-8", newline="\n")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
