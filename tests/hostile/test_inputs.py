"""What people type and hand in: attacks by seed over a fixed range. `dev.py fuzz` goes on with fresh ones."""

import pytest

from hostile import flags, formulas, indices, toml_files, worksheets


@pytest.mark.parametrize(
    ("attacked", "seeds"),
    [(flags, 150), (toml_files, 400), (worksheets, 400), (formulas, 150), (indices, 800)],
    ids=lambda value: value.__name__ if hasattr(value, "attack") else "",
)
def test_attacks_by_seed(tmp_path, attacked, seeds):
    for seed in range(seeds):
        attacked.attack(seed, tmp_path)
