"""Refit the loss law: `python benchmarks/loss_law.py` (needs SciPy).

It prints the constants of `src/byhand/budget/expectation.py` that fit RUNS best, and the residual of each run. E and
R stay: runs of minutes cannot tell E from smaller powers.
"""

from __future__ import annotations

import numpy as np
from scipy.optimize import least_squares

from byhand.budget import expectation
from byhand.budget.expectation import expected_loss

NAMES = ("A", "ALPHA", "B", "BETA", "C", "K")
TEXT = 1_003_855  # bytes of tinyshakespeare's training part
RUNS = (  # of `--minutes`' recipe: weights in blocks, context, millions of tokens, loss on the whole validation part
    (26_624, 64, 0.50, 1.9060),
    (26_624, 128, 0.50, 1.9048),
    (26_624, 128, 1.50, 1.7994),
    (106_496, 128, 0.50, 1.8175),
    (106_496, 128, 0.50, 1.8281),
    (106_496, 32, 1.00, 1.7624),
    (106_496, 64, 1.00, 1.7446),
    (106_496, 128, 1.00, 1.7172),
    (106_496, 256, 1.00, 1.7407),
    (106_496, 128, 1.50, 1.6577),
    (106_496, 128, 6.00, 1.5722),
    (159_744, 128, 1.50, 1.6473),
    (331_776, 128, 1.50, 1.5763),
    (331_776, 128, 1.50, 1.5797),
    (331_776, 128, 2.50, 1.5408),
    (331_776, 256, 2.50, 1.5413),
    (331_776, 128, 6.00, 1.4925),
    (331_776, 128, 6.00, 1.4870),
    (802_816, 128, 1.50, 1.5423),
    (802_816, 128, 4.00, 1.4778),
    (802_816, 128, 8.00, 1.4445),
    (1_769_472, 128, 1.50, 1.5107),
    (1_769_472, 128, 2.00, 1.4983),
)


def main() -> None:
    """Fit, and print the constants and the residuals."""
    start = np.log([getattr(expectation, name) for name in NAMES])
    left = residuals(found := least_squares(residuals, start, loss="soft_l1", f_scale=0.02).x)
    print(", ".join(f"{name} = {value:.3g}" for name, value in zip(NAMES, np.exp(found), strict=True)))
    for (weights, context, tokens, loss), off in zip(RUNS, left, strict=True):
        print(f"{weights:>9,} weights, context {context:3}, {tokens:.2f} M tokens: {loss:.3f} ({off:+.3f})")
    print(f"root mean square {np.sqrt(np.mean(left**2)):.3f}, at most {np.abs(left).max():.3f}")


def residuals(logs: np.ndarray) -> np.ndarray:
    """Return the expected minus the reached loss of each run, given the logarithms of the constants."""
    for name, value in zip(NAMES, np.exp(logs), strict=True):
        setattr(expectation, name, float(value))
    return np.array([expected_loss(n, 1e6 * tokens, context, TEXT) - loss for n, context, tokens, loss in RUNS])


if __name__ == "__main__":
    main()
