"""A run that was trained from Python, small enough for every test."""

import pytest

import byhand as bh

SMALL = {
    "seq_len": 24,
    "d_model": 16,
    "n_layers": 1,
    "n_heads": 2,
    "batch_size": 2,
    "warmup_steps": 3,
    "eval_windows": 4,
}
TEXT = "the quick brown fox jumps over the lazy dog\n" * 60


def train(**settings):
    """Train a small model with NumPy, without a word."""
    of_text = {} if {"data", "text", "resume"} & settings.keys() else {"text": TEXT}
    small = {} if "resume" in settings else SMALL | {"runtime": "numpy", "lm_head_bias": False, "steps": 6}
    return bh.train(**{"progress": False, **of_text, **small, **settings})


@pytest.fixture(scope="session")
def trained(tmp_path_factory):
    return train(out=tmp_path_factory.mktemp("api") / "run")
