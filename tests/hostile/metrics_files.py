"""metrics.jsonl with damage: its sound lines are kept as they are, nothing else is let through, nothing breaks."""

from __future__ import annotations

import json
import math
import random
import shutil
from pathlib import Path

from byhand.errors import ByhandError
from byhand.runs import metrics
from hostile.bytes import damaged

VALUES = [
    "NaN",
    "Infinity",
    "-Infinity",
    "1e999",
    "9" * 5000,
    "-1",
    '"1"',
    "null",
    "true",
    "[]",
    "{}",
    "[" * 3000,
    "1e308",
]


def lines(count: int = 12) -> list[bytes]:
    """Return lines as a run writes them."""
    rows = [
        {
            "step": i,
            "tokens": 32 * i,
            "train/loss": 5.5 - i / 7,
            "lr": 1e-3,
            "grad_norm": 1.5,
            "train/tok_per_sec": 9.5,
        }
        | ({"val/loss": 5.25, "val/bpb": 7.5} if i % 4 == 0 else {})
        for i in range(1, count + 1)
    ]
    return [json.dumps(row).encode() for row in rows]


def attack(seed: int, folder: Path) -> None:
    """Damage a file as the seed says, read it and cut it back; AssertionError if a sound line is lost or changed."""
    chance = random.Random(seed)
    whole = lines()
    at = chance.randrange(len(whole))
    hurt = list(whole)
    if chance.random() < 0.5:
        key = chance.choice(list(json.loads(whole[at])))
        text = json.dumps({**json.loads(whole[at]), key: "HERE"}).replace('"HERE"', chance.choice(VALUES))
        hurt[at] = text.encode()
    else:
        hurt[at] = damaged(whole[at], chance)
    run = folder / f"metrics-{seed}"
    run.mkdir()
    try:
        (run / metrics.METRICS).write_bytes(b"\n".join(hurt) + chance.choice([b"\n", b""]))
        _read(run, whole, at, chance.randrange(14))
    except AssertionError as error:
        raise AssertionError(f"metrics of seed {seed}: {error}") from error
    except (ByhandError, Exception) as error:
        raise AssertionError(f"metrics of seed {seed}: {type(error).__name__}: {str(error)[:200]}") from error
    finally:
        shutil.rmtree(run)


def _read(run: Path, whole: list[bytes], hurt: int, until: int) -> None:
    rows = metrics.read(run)
    sound = [json.loads(line) for i, line in enumerate(whole) if i != hurt]
    assert [row for row in rows if row in sound][: len(sound)] == sound, "a sound line is lost"
    for row in rows:
        assert type(row["step"]) is int, "step"
        assert 0 <= row["step"] <= metrics.LARGEST, "step"
        for key in metrics.NUMBERS:
            assert key not in row or math.isfinite(row[key]), key
    metrics.keep_until(run, until)
    kept = metrics.read(run)
    assert kept == [row for row in rows if row["step"] <= until], "cut back it is something else"
    content = (run / metrics.METRICS).read_bytes()
    assert content.count(b"\n") == len(kept), "cut back it holds lines that are none"
