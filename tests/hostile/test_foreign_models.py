"""Damaged models of other programs, by seed: ten of each kind, and in a long run ten thousand."""

import pytest

from hostile.foreign_models import KINDS, attack, pristine
from hostile.fuzz import seed_of


@pytest.mark.parametrize("count", [10, pytest.param(10_000, marks=pytest.mark.slow)])
@pytest.mark.parametrize("kind", KINDS)
def test_damaged_models_are_refused_in_one_line_or_read_as_they_are(kind, count, tmp_path):
    for number in range(count):
        attack(seed_of(1, kind, number), tmp_path, kind)


@pytest.mark.parametrize("kind", KINDS)
def test_what_is_not_damaged_is_read(kind, tmp_path):
    from byhand.interop import exchange

    for name, content in pristine(kind).items():
        (tmp_path / name).write_bytes(content)
    assert exchange.read(tmp_path if len(pristine(kind)) > 1 else tmp_path / next(iter(pristine(kind)))).arrays
