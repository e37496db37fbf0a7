"""TOML for `--config`: damaged settings, deep nesting, long numbers, dotted keys, bytes that are no UTF-8."""

from __future__ import annotations

import tomllib
from dataclasses import fields
from pathlib import Path
from random import Random

from byhand.cli.arguments.presets import LARGEST, PRESETS, with_toml
from byhand.config import DataConfig, ModelConfig, OptimConfig, TrainConfig
from byhand.files.reading import parse_toml
from hostile.outcome import accepted
from hostile.words import NESTS, damaged, hostile

NAMES = [f.name for cls in (TrainConfig, ModelConfig, OptimConfig, DataConfig) for f in fields(cls)]
GOOD = """# a run
steps = 6
batch-size = 2
[model]
seq_len = 16
d_model = 16  # C
n-heads = 2
activation = "relu"
[optim]
lr = 1e-3
betas = [0.9, 0.95]
note = '''x'''
[data]
val_fraction = 0.25
"""


def attack(seed: int, folder: Path) -> None:
    rng = Random(seed)
    content = _content(rng)
    path = folder / "settings.toml"
    path.write_bytes(content)
    taken = accepted(content, lambda: with_toml(PRESETS["tiny"], path))
    if taken is not None:
        config, named = taken
        assert isinstance(config, TrainConfig)
        assert set(named) <= set(NAMES)
        assert len(content) <= LARGEST
        assert parse_toml(content) == tomllib.loads(content.decode())


def _content(rng: Random) -> bytes:
    match rng.randrange(6):
        case 0 | 1:
            text = damaged(rng, GOOD)
        case 2:
            text = f"{rng.choice(NAMES)} = {hostile(rng)}\n"
        case 3:
            text = f"{rng.choice(NAMES)} = {rng.choice(NESTS) * rng.choice((3, 40, 5000))}\n"
        case 4:
            depth = rng.choice((2, 31, 33, 65, 200, 30_000))
            text = rng.choice((f"{'a.' * depth}a = 1", f"[{'a.' * depth}a]", f"{'[' * depth}a{']' * depth}",
                               f"a = {'[' * depth}{']' * depth}", f"a = {'{a=' * depth}1{'}' * depth}"))  # fmt: skip
        case _:
            lines = GOOD.splitlines()
            rng.shuffle(lines)
            text = "\n".join(lines)
    content = bytearray(text.encode("utf-8", "surrogatepass"))
    if content and rng.random() < 0.3:
        content[rng.randrange(len(content))] = rng.randrange(256)
    return bytes(content)
