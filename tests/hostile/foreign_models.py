"""Models of other programs with damage: refused in one line, or read as a plain reader of the format reads them."""

from __future__ import annotations

import json
import random
import re
import shutil
import struct
import tempfile
from collections.abc import Callable
from functools import cache
from pathlib import Path

import numpy as np
from safetensors.numpy import load as plain_safetensors

from byhand.config import TrainConfig
from byhand.errors import ByhandError
from byhand.formats.ggml import format_of
from byhand.interop import exchange
from byhand.model import TinyGPT, parameter_shapes
from byhand.runs.contents import Checkpoint
from hostile.bytes import damaged
from interop import foreign_cases as foreign
from interop.run_cases import GPT2, LLAMA, parameters

Files = dict[str, bytes]
NUMBERS = ["0", "1", "-1", "2", "1e9", "1e400", "1" + "0" * 10, "9" * 5000, "true", '"8"', "2.0", "[]", "null"]

WORDS = [0, 1, 2**31, 2**32 - 1, 2**63, 2**64 - 1, 0x7FC00000, 0x7F800000, 20, 255]


@cache
def pristine(kind: str) -> Files:
    """Return the files of a small model of each kind."""
    place = Path(tempfile.mkdtemp())
    try:
        if kind in foreign.KINDS:
            config = foreign.settings(kind, 1)
            foreign.write_folder(place, config, foreign.drawn(foreign.shapes(config)))
            shards(place, foreign.drawn(foreign.shapes(config))) if kind == "qwen3" else None
        elif kind.startswith("gguf"):
            config = LLAMA if "llama" in kind else GPT2
            run = Checkpoint(TrainConfig(model=config), parameters(config), {}, {"step": 0})
            exchange.write(run, "gguf", place, "q4_0" if "llama" in kind else "float16")
        elif kind == "llm.c":
            from interop.test_llm_c import arrays, written

            (place / "model.bin").write_bytes(written(arrays(), version=5))
        else:
            from interop.test_nanogpt import checkpoint

            checkpoint(place)
        return {path.name: path.read_bytes() for path in sorted(place.iterdir())}
    finally:
        shutil.rmtree(place)


def shards(place: Path, arrays: dict[str, np.ndarray]) -> None:
    """Put a folder's tensors into two shards."""
    (place / "model.safetensors").unlink()
    names = sorted(arrays)
    index = {}
    for file, part in (("a.safetensors", names[::2]), ("b.safetensors", names[1::2])):
        (place / file).write_bytes(foreign.safetensors({name: arrays[name] for name in part}))
        index |= dict.fromkeys(part, file)
    (place / "model.safetensors.index.json").write_text(json.dumps({"weight_map": index}))


def setting(content: bytes, chance: random.Random) -> bytes:
    """Put another number in the place of one of a JSON table's."""
    keys = re.findall(rb'"([a-z_]+)": [-\d.tfn]', content) or [b"none"]
    key, value = chance.choice(keys), chance.choice(NUMBERS).encode()
    return re.sub(b'"' + key + rb'": [^,}\]]+', lambda _: b'"' + key + b'": ' + value, content, count=1)


def number(content: bytes, chance: random.Random) -> bytes:
    """Put another integer in the place of four or eight bytes, mostly near the beginning."""
    at = chance.randrange(min(len(content), chance.choice([32, 300, 8000, len(content)])) or 1)
    packed = struct.pack("<Q", chance.choice(WORDS))[: chance.choice([4, 8])]
    return content[:at] + packed + content[at + len(packed) :]


KINDS = (*foreign.KINDS, "gguf gpt2", "gguf llama", "llm.c", "nanogpt")


def attack(seed: int, folder: Path, kind: str = "") -> None:
    """Damage a model as the seed says and read it; AssertionError if that goes otherwise than it should."""
    chance = random.Random(seed)
    kind = kind or chance.choice(KINDS)
    files = dict(pristine(kind))
    name = chance.choice(sorted(files))
    ways: list[Callable[[bytes, random.Random], bytes]] = [damaged, number, setting if "json" in name else number]
    files[name] = chance.choice(ways)(files[name], chance)
    place = folder / f"model-{seed}"
    place.mkdir()
    try:
        for file, content in files.items():
            (place / file).write_bytes(content)
        _read(place, kind, next(iter(files)))
    except AssertionError as error:
        raise AssertionError(f"{kind} of seed {seed}: {error}") from error
    finally:
        shutil.rmtree(place)


def _read(place: Path, kind: str, name: str) -> None:
    try:
        found = exchange.read(place if kind in foreign.KINDS else place / name)
        found.tokenizer()
    except ByhandError as error:
        line = str(error)
        assert line.isprintable(), f"not one line: {line!r}"
        assert 0 < len(line) < 1000, f"{len(line)} characters"
        return
    except Exception as error:
        raise AssertionError(f"a traceback: {type(error).__name__}: {str(error)[:200]}") from error
    shapes = parameter_shapes(found.config)
    assert {n: a.shape for n, a in found.arrays.items()} == shapes, "arrays of other shapes"
    assert all(a.dtype == np.float32 and np.isfinite(a).all() for a in found.arrays.values()), "not finite"
    if kind in foreign.KINDS:
        theirs: dict[str, np.ndarray] = {}
        for path in place.glob("*.safetensors"):
            theirs |= plain_safetensors(path.read_bytes())
        key, last = {
            "gpt2": ("transformer.wte.weight", "transformer.ln_f.weight"),
            "gpt_neo": ("transformer.wte.weight", "transformer.ln_f.weight"),
            "gpt_neox": ("gpt_neox.embed_in.weight", "gpt_neox.final_layer_norm.weight"),
        }.get(kind, ("model.embed_tokens.weight", "model.norm.weight"))
    elif kind.startswith("gguf"):
        theirs = plain_gguf((place / name).read_bytes())
        key, last = "token_embd.weight", "output_norm.weight"
    else:
        return
    assert np.array_equal(found.arrays["wte"], theirs[key]), "other numbers than a plain reader's"
    gain = theirs[last] + np.float32(1) if kind.startswith("gemma") else theirs[last]
    assert np.array_equal(found.arrays["ln_f.gain"], gain), "other numbers than a plain reader's"
    if sum(a.size for a in found.arrays.values()) < 1 << 20 and found.config.seq_len > 1:
        with np.errstate(all="ignore"):  # a flipped exponent makes a large number
            TinyGPT(found.config, arrays=found.arrays).forward_logits([[0, 1]])


def plain_gguf(content: bytes) -> dict[str, np.ndarray]:
    """Return a file's tensors, read as its description says and without a check."""
    at = 24
    letters = dict(zip((0, 1, 2, 3, 4, 5, 6, 7, 10, 11, 12), "BbHhIif?Qqd", strict=True))

    def take(letter: str) -> int:
        nonlocal at
        at += struct.calcsize(f"<{letter}")
        return struct.unpack_from(f"<{letter}", content, at - struct.calcsize(f"<{letter}"))[0]

    def text() -> str:
        nonlocal at
        size = take("Q")
        at += size
        return content[at - size : at].decode()

    def value(kind: int) -> object:
        if kind == 8:
            return text()
        if kind == 9:
            item, count = take("I"), take("Q")
            return [value(item) for _ in range(count)]
        return take(letters[kind])

    count, keys = struct.unpack_from("<QQ", content, 8)
    known = {text(): value(take("I")) for _ in range(keys)}
    listed = [(text(), tuple(take("Q") for _ in range(take("I")))[::-1], take("I"), take("Q")) for _ in range(count)]
    alignment = known.get("general.alignment", 32)
    assert isinstance(alignment, int)
    at += -at % alignment
    found = {}
    for name, shape, code, offset in listed:
        kind = format_of(code)
        size = int(np.prod(shape)) // kind.block * kind.size
        data = np.frombuffer(content[at + offset : at + offset + size], np.uint8)
        found[name] = kind.floats(data).reshape(shape)
    return found
