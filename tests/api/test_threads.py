"""Threads, each with a model of its own or sharing one: each gets the same text as alone."""

import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

import pytest

import byhand as bh
from cli.process import PATIENCE, environment
from needs import needs_loops

RUNTIMES = ["numpy", pytest.param("loops", marks=needs_loops)]
MANY = 4


def texts(model, seed, runtime):
    """A text, the same in pieces up to a stop text, and an answer."""
    settings = {"seed": seed, "max_new_tokens": 30, "runtime": runtime}
    pieces = model.stream("the ", stop="e", **settings)
    return [model.generate("the ", **settings), "".join(pieces), model.chat("fox?", **settings)]


@pytest.mark.parametrize("runtime", RUNTIMES)
def test_threads_that_share_a_model_get_their_own_texts(trained, runtime):
    """Also beside half-read texts, whose rest is read later or never."""
    settings = {"seed": 9, "max_new_tokens": 100, "runtime": runtime}
    alone = [texts(bh.load(trained), seed, runtime) for seed in range(MANY)]
    whole, model = bh.load(trained).generate("dog", **settings), bh.load(trained)
    later, never, dropped = (model.stream("dog", **settings) for _ in range(3))
    begun = [next(stream) for stream in (later, never)]
    next(dropped)
    del dropped
    with ThreadPoolExecutor(MANY) as pool:
        assert list(pool.map(lambda seed: texts(model, seed, runtime), range(MANY))) == alone
    assert begun[0] + "".join(later) == whole


FIRST_USE = """
import sys
from concurrent.futures import ThreadPoolExecutor
import byhand as bh
shared = bh.load(sys.argv[1])
models = [shared, shared, *(bh.load(sys.argv[1]) for _ in range(2))]
with ThreadPoolExecutor(4) as pool:
    found = set(pool.map(lambda m: m.generate("the ", seed=1, max_new_tokens=30, runtime="loops"), models))
assert len(found) == 1, found
"""


@needs_loops
@pytest.mark.parametrize("times", [1, pytest.param(20, marks=pytest.mark.slow)])
def test_threads_may_be_the_first_to_use_the_loops(trained, times):
    trained.generate(max_new_tokens=1, runtime="loops")  # the kernels are on disk
    for _ in range(times):
        command = [sys.executable, "-c", FIRST_USE, str(trained.path)]
        done = subprocess.run(command, env=environment(), capture_output=True, timeout=PATIENCE, check=False)
        assert done.returncode == 0, done.stderr
