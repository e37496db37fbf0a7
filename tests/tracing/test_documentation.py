"""The examples of `byhand.tracing` run as they stand."""

import doctest

from byhand import tracing


def test_the_docstring():
    tried = doctest.testmod(tracing)
    assert tried.attempted > 5
    assert tried.failed == 0
