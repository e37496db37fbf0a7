"""Timings in tests are looked at, not compared: the machine need not rest before each."""

import pytest

import runtimes.conftest  # noqa: F401  (eight devices, set before JAX starts)


@pytest.fixture(autouse=True)
def at_once(monkeypatch):
    monkeypatch.setattr("byhand.bench.contest.REST", 0.0)
