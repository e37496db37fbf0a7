"""An equation that is no part of the package: its files are imported for the tests of a module, then forgotten."""

import sys
from importlib import import_module

import pytest

from byhand.book.entries.contract import ENTRIES
from byhand.engine import registry

STEM = "softplus"


@pytest.fixture(scope="module")
def softplus():
    names = (f"toy.{STEM}", f"toy.{STEM}_entry")
    try:
        yield [import_module(name) for name in names][0].softplus  # noqa: RUF015 - both are imported
    finally:
        registry.pop(STEM, None)
        ENTRIES.pop(STEM, None)
        for name in names:
            sys.modules.pop(name, None)
