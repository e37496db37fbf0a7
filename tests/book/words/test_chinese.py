"""Every equation and every symbol has its Chinese words, and none is left over."""

import pytest

import byhand.equations  # noqa: F401 - fills the registry
from byhand.book.words.chinese import MEANINGS, TITLES
from byhand.engine.equation import registry


@pytest.mark.parametrize("name", registry)
def test_symbols_are_translated(name):
    equation = registry[name]
    assert set(MEANINGS[name]) == {s.name for s in (*equation.inputs, equation.result)}


def test_no_title_is_missing_or_left_over():
    assert set(TITLES) == set(MEANINGS) == set(registry)
