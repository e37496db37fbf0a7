"""Timings in tests are looked at, not compared: the machine need not rest before each."""

import pytest


@pytest.fixture(autouse=True)
def at_once(monkeypatch):
    monkeypatch.setattr("byhand.bench.contest.REST", 0.0)
