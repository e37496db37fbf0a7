"""Fit the law of loss anew: `python benchmarks/loss_law.py RUNS` (needs SciPy).

RUNS is a table of runs on tinyshakespeare with the recipe of `--minutes`, one a line: weights in blocks, context,
tokens, and the loss on the whole validation text. It prints the constants of `src/byhand/budget/expectation.py`, and
what they leave over of each run. E and R stay: runs of minutes cannot tell E from smaller powers.
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
from scipy.optimize import least_squares

from byhand.budget import expectation
from byhand.budget.expectation import expected_loss

NAMES = ("A", "ALPHA", "B", "BETA", "C", "K")
TEXT = 1_003_855  # bytes of the training part


def main(path: str) -> None:
    """Fit, and print the constants and the residuals."""
    runs = np.loadtxt(Path(path), ndmin=2)
    start = np.log([getattr(expectation, name) for name in NAMES])
    found = least_squares(lambda logs: residuals(logs, runs), start, loss="soft_l1", f_scale=0.02)
    left = residuals(found.x, runs)
    print(", ".join(f"{name} = {value:.3g}" for name, value in zip(NAMES, np.exp(found.x), strict=True)))
    for (weights, context, tokens, loss), off in zip(runs, left, strict=True):
        print(f"{weights:>10,.0f} weights, T {context:3.0f}, {tokens / 1e6:6.2f} M tokens: {loss:.3f} ({off:+.3f})")
    print(f"root mean square {np.sqrt(np.mean(left**2)):.4f}, at most {np.abs(left).max():.3f}")


def residuals(logs: np.ndarray, runs: np.ndarray) -> np.ndarray:
    """Return the expected minus the reached loss of each run, with constants given by their logarithms."""
    for name, value in zip(NAMES, np.exp(logs), strict=True):
        setattr(expectation, name, float(value))
    return np.array([expected_loss(int(n), d, t, TEXT) - loss for n, t, d, loss in runs])


if __name__ == "__main__":
    main(sys.argv[1])
