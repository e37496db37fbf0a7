"""Checkpoints that somebody damaged or forged: refused in one line, or exactly what their files say."""

from __future__ import annotations

import json
import math
import random
import shutil
import struct
from dataclasses import replace
from functools import cache
from pathlib import Path

import numpy as np
from safetensors.numpy import load as by_the_library

from byhand.config import ModelConfig, TrainConfig
from byhand.errors import ByhandError, CheckpointError
from byhand.files import sealed
from byhand.files.run_folder import MANIFEST, MODEL
from byhand.model import TinyGPT, parameter_shapes
from byhand.runs import checkpoint
from byhand.runs import hosts as shared
from byhand.runs.contents import CONFIG, OPTIMIZER, PARTS, STATE, TOKENIZER, Checkpoint
from byhand.runtimes.process_group import ProcessGroup
from byhand.tokenizers.bpe import BytePairTokenizer
from byhand.tokenizers.byte import BYTES
from hostile.bytes import damaged
from thread_group import on_hosts

SIZES = [0, 1, 3, 7, 64, 1 << 17, 10**9, 10**10, 2**63, 10**30, -1, True, None, 2.5, "8", [8], 10**400]
NAMES = ["vocab_size", "seq_len", "d_model", "n_layers", "n_heads", "d_ff"]


SYMBOLS = [*"abcdefghi", "ab", "abc"]
BPE = BytePairTokenizer({symbol: i for i, symbol in enumerate(SYMBOLS)}, [("a", "b"), ("ab", "c")])


@cache
def pristine(of_bytes: bool = False, hosts: int = 1) -> dict[str, bytes]:
    """Return the files of a whole checkpoint of step 2, with a tokenizer of eleven tokens unless it is of bytes.

    hosts  so many saved it, each with rows of the arrays
    """
    import tempfile

    config = TrainConfig(model=ModelConfig(vocab_size=11, seq_len=8, d_model=4, n_heads=2), steps=5)
    parameters = {n: p.data for n, p in TinyGPT(config.model).parameters().items()}
    moments = {n: np.full_like(p, 0.5) for n, p in parameters.items()}
    state = {"step": 2, "text": {"path": "corpus.bin"}}
    whole = Checkpoint(config, parameters, {"m": moments, "v": moments}, state, tokenizer=BYTES if of_bytes else BPE)

    def save(group: ProcessGroup) -> Path:
        own, kept = (_rows(arrays, group.index, hosts) for arrays in (parameters, moments))
        made = replace(whole, parameters=own, moments={"m": kept, "v": kept})
        return shared.save(Path(folder), made, 2, group)

    with tempfile.TemporaryDirectory() as folder:
        path = on_hosts(hosts, save)[0]
        return {file.name: file.read_bytes() for file in path.iterdir()}


def _rows(arrays: dict[str, np.ndarray], index: int, hosts: int) -> dict[str, np.ndarray]:
    """Return the rows of arrays that a host saves."""
    found = {}
    for name, array in arrays.items():
        begin, end = (len(array) * i // hosts for i in (index, index + 1))
        box = ",".join([f"{begin}:{end}", *(f"0:{n}" for n in array.shape[1:])])
        found[f"{name}[{box}]" if hosts > 1 else name] = array[begin:end]
    return found


def attack(seed: int, folder: Path) -> None:
    """Damage a checkpoint as the seed says and load it; AssertionError if that goes otherwise than it should."""
    chance = random.Random(seed)
    of_bytes = chance.random() < 0.5
    hosts = chance.choice([1, 1, 2, 3])
    files = dict(pristine(of_bytes, hosts))
    kinds = [_damage_sealed, _damage_resealed, _damage_resealed, _forge_header, _forge_config, _forge_state]
    kinds += [_forge_tokenizer] * (not of_bytes) + [_forge_parts] * (hosts > 1)
    kind = chance.choice(kinds)
    kind(files, chance)
    run = folder / f"run-{seed}"
    path = run / "step-00000002"
    path.mkdir(parents=True)
    for name, content in files.items():
        (path / name).write_bytes(content)
    try:
        expect_refused_or_true(run, must_refuse=kind is _damage_sealed and files != pristine(of_bytes, hosts))
    except AssertionError as error:
        raise AssertionError(f"checkpoint of seed {seed} ({kind.__name__}): {error}") from error
    finally:
        shutil.rmtree(run)


def expect_refused_or_true(run: Path, must_refuse: bool = False) -> None:
    """Load a run's only checkpoint; what comes back must be what an independent reader finds in its files."""
    for moments in (True, False):
        try:
            loaded = checkpoint.load(run, moments=moments)
            model = loaded.model()
        except CheckpointError as error:
            line = str(error)
            assert line.isprintable(), f"not one line: {line!r}"
            assert len(line) < 1000, "the line is too long"
            continue
        except ByhandError as error:
            raise AssertionError(f"another error than one of checkpoints: {error}") from error
        except Exception as error:
            raise AssertionError(f"a traceback: {type(error).__name__}: {str(error)[:200]}") from error
        if must_refuse and moments:
            raise AssertionError("a damaged checkpoint was accepted")
        assert loaded.path is not None
        arrays = _independently(loaded.path, MODEL)
        shapes = parameter_shapes(loaded.config.model)
        assert {n: a.shape for n, a in arrays.items()} == shapes, "shapes"
        assert list(model.parameters()) == list(shapes), "names"
        listed = json.loads((loaded.path / MANIFEST).read_bytes())["files"]
        written = (loaded.path / TOKENIZER).read_bytes() if TOKENIZER in listed else BYTES.content
        assert loaded.tokenizer.content == written, "tokenizer"
        if TOKENIZER in listed:
            assert loaded.tokenizer.vocab_size == loaded.config.model.vocab_size, "vocabulary"
        for name, parameter in model.parameters().items():
            assert np.array_equal(parameter.data, arrays[name]), f"{name} is not what its file holds"
            assert np.isfinite(parameter.data).all(), f"{name} is not finite"
        if moments:
            both = _independently(loaded.path, OPTIMIZER)
            for key, part in loaded.moments.items():
                for name, array in part.items():
                    assert np.array_equal(array, both[f"{key}.{name}"]), f"{key}.{name}"
                    assert np.isfinite(array).all(), f"{key}.{name} is not finite"
            assert all((array >= 0).all() for array in loaded.moments.get("v", {}).values()), "negative v"
            assert len(loaded.moments.get("m", {})) in (0, len(shapes)), "some moments"
        state = json.loads((loaded.path / STATE).read_bytes())
        assert loaded.step == state["step"] == 2, "step"
        assert isinstance(loaded.state["text"], dict), "text"


def _independently(path: Path, whole: str) -> dict[str, np.ndarray]:
    """Return the arrays of a file, or of its parts put together, by the library."""
    listed = json.loads((path / MANIFEST).read_bytes())["files"]
    if whole in listed:
        return by_the_library((path / whole).read_bytes())
    pieces: dict[str, list[tuple[list[slice], np.ndarray]]] = {}
    for file in listed:
        if file.startswith(f"{whole.split('.')[0]}-"):
            for key, array in by_the_library((path / file).read_bytes()).items():
                name, _, box = key.rstrip("]").partition("[")
                pairs = [pair.split(":") for pair in box.split(",")] if box else [(0, n) for n in array.shape]
                pieces.setdefault(name, []).append(([slice(int(a), int(b)) for a, b in pairs], array))
    found = {}
    for name, parts in pieces.items():
        found[name] = np.full(
            [max(s.stop for s in axis) for axis in zip(*(b for b, _ in parts), strict=True)], np.nan
        )
        for box, array in parts:
            found[name][*box] = array
    return found


def _seal(files: dict[str, bytes]) -> None:
    files[MANIFEST] = sealed.manifest(
        sealed.entries({name: [content] for name, content in files.items() if name != MANIFEST})
    )


def _damage_sealed(files: dict[str, bytes], chance: random.Random) -> None:
    name = chance.choice([*files])
    files[name] = damaged(files[name], chance)


def _damage_resealed(files: dict[str, bytes], chance: random.Random) -> None:
    name = chance.choice([n for n in files if n != MANIFEST])
    files[name] = damaged(files[name], chance)
    _seal(files)


def _forge_header(files: dict[str, bytes], chance: random.Random) -> None:
    """Put a header that lies in front of the arrays."""
    name = chance.choice([name for name in files if name.endswith(".safetensors")])
    length = int.from_bytes(files[name][:8], "little")
    header, data = json.loads(files[name][8 : 8 + length]), bytearray(files[name][8 + length :])
    key = chance.choice(list(header))
    other = chance.choice(list(header))
    entry = header[key]
    size = len(data)
    match chance.randrange(11):
        case 0:
            entry["dtype"] = chance.choice(["F64", "F16", "BF16", "I32", "U8", "F8_E4M3", "", None, 3, "F32 "])
        case 1:
            shape = chance.choice(
                [[2**32, 2**32], [2**63], [-1, -4], [0], [], [1] * 9, entry["shape"][::-1], "4", [None]]
            )
            entry["shape"] = shape
        case 2:
            at = chance.choice(
                [[0, 0], [0, size], [size, 2 * size], [-8, 8], [8, 0], [0, 2**64], [0.0, 4.0], [], "0", [0]]
            )
            entry["data_offsets"] = at
        case 3:
            entry["data_offsets"] = header[other]["data_offsets"]  # overlapping
        case 4:
            header[chance.choice(["x", "", "wte ", "__metadata__", "m.", "步", "a\n"])] = header.pop(key)
        case 5:
            del header[key]
        case 6:
            header[key], header[other] = header[other], header[key]
        case 7:
            at = 4 * chance.randrange(size // 4)
            value = chance.choice([math.nan, math.inf, -math.inf, 3e38, -0.0, -1.0])
            data[at : at + 4] = struct.pack("<f", value)
        case 8:
            entry[chance.choice(["extra", "shape "])] = 1
        case 9:
            del entry[chance.choice(["dtype", "shape", "data_offsets"])]
        case 10:
            forged = [
                "0:1",
                "0:0",
                "5:3",
                "0:4",
                "0:2,0:4",
                "0:99",
                "9" * 5000,
                "0:" + "9" * 5000,
                "",
                ":",
                "-1:1",
                "0:٤",
            ]
            header[f"{key.split('[')[0]}[{chance.choice(forged)}]"] = header.pop(key)
    written = json.dumps(header).encode()
    written += b" " * chance.choice([0, 0, -len(written) % 8, 7, 5000])
    stated = chance.choice([len(written)] * 8 + [0, 1, 2**63, 2**64 - 1, len(written) + size, len(written) - 1])
    files[name] = stated.to_bytes(8, "little") + written + bytes(data)
    _seal(files)


def _forge_config(files: dict[str, bytes], chance: random.Random) -> None:
    config = json.loads(files[CONFIG])
    for _ in range(chance.randint(1, 3)):
        part = chance.choice([config["model"], config["model"], config, config["optim"], config["data"]])
        part[chance.choice([*part, *NAMES]) if part is config["model"] else chance.choice(list(part))] = (
            chance.choice(SIZES)
        )
        if (
            not isinstance(config["model"], dict)
            or not isinstance(config["optim"], dict)
            or not isinstance(config["data"], dict)
        ):
            break
    files[CONFIG] = json.dumps(config).encode()
    _seal(files)


def _forge_tokenizer(files: dict[str, bytes], chance: random.Random) -> None:
    """Put another value into the tokenizer, or leave it out, or give the file to a checkpoint that has none."""
    values = json.loads(files[TOKENIZER])
    forged = [*SIZES, "bpe", "byte", "x" * 10**5, "", [], {}, [["a"]], [["a", "b", "c"]], [["a", 1]], {"a": "b"}]
    match chance.randrange(5):
        case 0:
            values[chance.choice(["kind", "vocabulary", "merges", "more"])] = chance.choice(forged)
        case 1:
            values["vocabulary"][chance.choice([*SYMBOLS, "\ud800", "步", "\0"])] = chance.choice([*SIZES, 1 << 20])
        case 2:
            values["merges"].insert(chance.randrange(3), chance.choice([["a", "b"], ["x", "y"], [], "ab", 7, [1, 2]]))
        case 3:
            del values[chance.choice([*values])]
        case 4:
            values["merges"] *= 10**4
    files[TOKENIZER] = json.dumps(values, sort_keys=True, separators=(",", ":")).encode()
    if chance.random() < 0.1:
        del files[TOKENIZER]
    _seal(files)


def _forge_parts(files: dict[str, bytes], chance: random.Random) -> None:
    """Lose, exchange, rename or repeat parts."""
    parts = sorted(name for name in files if PARTS.fullmatch(name))
    one, other = chance.choice(parts), chance.choice(parts)
    numbers = ["00000", "00001", "00002", "00003", "00004", "99999", "1", "٠٠٠٠١"]
    match chance.randrange(5):
        case 0:
            del files[one]
        case 1:
            files[one], files[other] = files[other], files[one]
        case 2:
            files[one] = files[other]
        case 3:
            kind = chance.choice(["model", "optimizer", "other"])
            files[f"{kind}-{chance.choice(numbers)}-of-{chance.choice(numbers)}.safetensors"] = files[one]
        case 4:
            files[chance.choice([MODEL, OPTIMIZER])] = files[one]
    _seal(files)


def _forge_state(files: dict[str, bytes], chance: random.Random) -> None:
    state = json.loads(files[STATE])
    state[chance.choice(["step", "text"])] = chance.choice([*SIZES, 2, 0, {}, {"path": []}, {"sha256": None}, [[[]]]])
    files[STATE] = json.dumps(state).encode()
    _seal(files)
