"""microgpt's run: the published program's digits on the page's names, and the generator by the page's rules."""

import math
from collections.abc import Iterator
from itertools import accumulate, islice
from random import Random

import pytest

from byhand.book.port import microgpt
from byhand.book.port.microgpt import SEED, MicroRun

# What the published program prints with 40 steps in place of 1000.
LOSSES = (
    "3.3136 2.9131 3.1501 2.9986 3.1056 3.0145 2.7678 3.1678 2.8690 3.0211 2.9580 3.1205 2.3489 2.2062 2.3778 2.2060 "
    "2.3518 2.3815 1.9925 2.4715 2.1517 2.5613 2.6169 2.5344 1.9295 1.9088 1.9179 1.7953 2.0465 2.0461 1.6246 2.0939 "
    "1.8671 2.2780 2.4914 2.2314 1.7447 1.8283 1.6970 1.6526"
)
DRAWN = (
    "nsorui korumr poruken aelor melt ornwne orlo oreeo irvel pendn pfeora orvo joruel psnen orro velo meausl orbue "
    "orael orara"
)


def test_a_short_run_has_the_programs_digits_and_samples(monkeypatch):
    monkeypatch.setattr(microgpt, "STEPS", 40)
    run = MicroRun()
    assert " ".join(f"{loss:.4f}" for loss in run.losses(40)) == LOSSES
    assert " ".join(run.sample() for _ in DRAWN.split()) == DRAWN


@pytest.mark.slow
def test_the_whole_run_has_the_programs_digits_and_samples():
    run = MicroRun()
    losses = list(run.losses())
    assert {step: round(losses[step - 1], 4) for step in microgpt.LOSSES} == microgpt.LOSSES
    assert tuple(run.sample() for _ in microgpt.DRAWN) == microgpt.DRAWN


def words(seed: int) -> Iterator[int]:
    """Yield MT19937's words by the rules of the page."""
    s = [19650218]
    for i in range(1, 624):
        s.append((1812433253 * (s[-1] ^ s[-1] >> 30) + i) % 2**32)
    for factor, added, places in (
        (1664525, lambda i: seed, [*range(1, 624), 1]),
        (1566083941, lambda i: -i, [*range(2, 624), 1]),
    ):
        for i in places:
            s[i] = ((s[i] ^ factor * (s[i - 1] ^ s[i - 1] >> 30)) + added(i)) % 2**32
            if i == 623:
                s[0] = s[623]
    s[0], i = 2**31, 0
    while True:
        y = (s[i] & 0x80000000) | (s[(i + 1) % 624] & 0x7FFFFFFF)
        y = s[i] = s[(i + 397) % 624] ^ (y >> 1) ^ (0x9908B0DF * (y & 1))
        i = (i + 1) % 624
        y ^= y >> 11
        y ^= (y << 7) & 0x9D2C5680
        y ^= (y << 15) & 0xEFC60000
        yield y ^ y >> 18


def uniform(of: Iterator[int]) -> float:
    a = next(of) >> 5
    return (a * 2**26 + (next(of) >> 6)) / 2**53


def test_the_rules_of_the_page_are_those_of_pythons_generator():
    python = Random(SEED)
    assert list(islice(words(SEED), 2000)) == [python.getrandbits(32) for _ in range(2000)]
    of, python = words(SEED), Random(SEED)
    assert [uniform(of) for _ in range(9)] == [python.random() for _ in range(9)]
    u, v = uniform(of), uniform(of)
    radius = math.sqrt(-2 * math.log(1 - v))
    assert [python.gauss(1, 2), python.gauss(1, 2)] == pytest.approx(
        [1 + 2 * radius * math.cos(2 * math.pi * u), 1 + 2 * radius * math.sin(2 * math.pi * u)], rel=1e-14
    )
    mine, theirs = list(range(32)), list(range(32))
    for i in range(len(mine) - 1, 0, -1):
        while (j := next(of) >> (32 - (i + 1).bit_length())) > i:
            pass
        mine[i], mine[j] = mine[j], mine[i]
    python.shuffle(theirs)
    assert mine == theirs
    weights = (1, 2, 3, 4)
    below = [uniform(of) * 10 for _ in range(20)]
    chosen = [next(i for i, sum_ in enumerate(accumulate(weights)) if sum_ > x) for x in below]
    assert chosen == python.choices(range(4), weights, k=20)
