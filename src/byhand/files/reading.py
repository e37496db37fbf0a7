"""Reading untrusted files: regular files of bounded size, JSON and TOML of bounded depth.

A FIFO blocks for ever, /dev/zero never ends, and 100,000 opening brackets exhaust the stack: they are refused before
reading or parsing.
"""

from __future__ import annotations

import errno
import json
import os
import re
import stat
import time
import tomllib
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any, NoReturn

from byhand.errors import DataError

SMALL = 1 << 20  # bytes: settings, manifests, state
VALUES = 1 << 22  # in a file; a vocabulary of a million tokens with its merges has three million
DEPTH = 32  # nested tables and lists; ours have four
EVERY = 2.0  # seconds between two lines of progress
DIGITS = 400  # of a number: more than a float64 or an int64 takes in any notation

# A string may end with the text, so that an open quote is met once and not at each quote behind it.
_STRING = rb'"(?:[^"\\]|\\.)*+(?:"|\\?\Z)'
_BRACKETS = re.compile(_STRING + rb"|([\[{])|([\]}])", re.DOTALL)
# Strings and comments of TOML; what is left open ends with its line or the text. Else: brackets.
_TOML = re.compile(
    rb'"""(?:[^\\]|\\.)*?(?:"""|\Z)|"(?:[^"\\\n]|\\.)*+"?'
    rb"|'''.*?(?:'''|\Z)|'[^'\n]*+'?|#[^\n]*+|([\[{])|([\]}])",
    re.DOTALL,
)
_NUMBER = re.compile(rb"[-+0-9.eE_]{%d,}" % (DIGITS + 1))


def open_regular(path: str | Path) -> int:
    """Return a descriptor of a regular file, open for reading; the caller closes it.

    Raises OSError, with `filename` and a `strerror` for people, if the path cannot be opened or is not a regular
    file; opening never blocks.
    """
    # O_NONBLOCK: opening a FIFO without a writer returns at once. O_BINARY exists on Windows only.
    flags = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0) | getattr(os, "O_CLOEXEC", 0)
    try:
        descriptor = os.open(path, flags)
    except ValueError as error:  # a NUL character in the name
        raise OSError(errno.EINVAL, str(error), str(path)) from None
    mode = os.fstat(descriptor).st_mode
    if stat.S_ISREG(mode):
        return descriptor
    os.close(descriptor)
    if stat.S_ISDIR(mode):
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), str(path))
    raise OSError(errno.EINVAL, "it is not a regular file", str(path))


def read_regular(path: str | Path, most: int) -> bytes:
    """Return the bytes of a regular file.

    Raises OSError as `open_regular` does, or if it holds more than `most` bytes; never reads more.
    """
    return read_with_facts(path, most)[0]


def read_with_facts(path: str | Path, most: int) -> tuple[bytes, os.stat_result]:
    """Return the bytes of a regular file, and its status: owner, mode."""
    with os.fdopen(open_regular(path), "rb") as file:
        facts = os.fstat(file.fileno())
        size = facts.st_size
        content = file.read(size + 1) if size <= most else b""  # `read` allocates as much as it is asked for
        while size <= most and len(content) <= most and (more := file.read(SMALL)):  # the file grows, or is in /proc
            content += more
        if max(size, len(content)) > most:
            raise OSError(errno.EFBIG, f"it holds more than {most:,} bytes", str(path))
    return content, facts


def parse_json(content: bytes | str, depth: int = DEPTH) -> Any:
    """Return a JSON value.

    Raises ValueError if it is not valid, is not UTF-8, nests deeper than `depth`, has more than VALUES values, or
    holds NaN, infinity, a number of over DIGITS digits or an object with the same key twice.
    """
    encoded = content.encode("utf-8", "surrogatepass") if isinstance(content, str) else content
    _require_depth(_BRACKETS.finditer(encoded), depth)
    require_few(encoded)
    if _NUMBER.search(re.sub(_STRING, b'""', encoded, flags=re.DOTALL)):
        raise ValueError(f"a number of more than {DIGITS} digits")
    text = content if isinstance(content, str) else content.decode("utf-8-sig")
    return json.loads(text, parse_constant=refuse_constant, parse_float=_finite, object_pairs_hook=_single)


def require_few(encoded: bytes) -> None:
    """Raise ValueError if JSON has more than VALUES values: an empty list takes twenty times its size in memory."""
    if encoded.count(b",") + encoded.count(b"[") + encoded.count(b"{") > VALUES:
        raise ValueError(f"more than {VALUES:,} values")


def parse_toml(content: bytes) -> dict[str, Any]:
    """Return the tables of a TOML file.

    Raises ValueError if it is not TOML or UTF-8, nests deeper than DEPTH, or holds a number of over DIGITS digits.
    """
    _require_depth(_TOML.finditer(content), DEPTH)
    bare = _TOML.sub(lambda m: m[1] or m[2] or b"", content)
    if max(line.count(b".") for line in bare.split(b"\n")) > 2 * DEPTH:  # a.b.c = 1 nests, too
        raise ValueError(f"a line with more than {2 * DEPTH} points outside strings")
    if _NUMBER.search(bare):
        raise ValueError(f"a number of more than {DIGITS} digits")
    return tomllib.loads(content.decode("utf-8"))


def parse_integer(written: str, name: str) -> int:
    """Return a decimal integer; DataError naming `name` if it is not one or has more than 18 digits.

    Python refuses to convert over 4,300 digits with an error of its own, and is slow just below that.
    """
    if not re.fullmatch(r"[-+]?[0-9]+", written):
        raise DataError(f"{name} {written[:40]!r} is not an integer. Write it in digits.")
    if len(written.lstrip("+-").lstrip("0")) > 18:
        raise DataError(f"{name} has more than 18 digits. Use a smaller number.")
    return int(written)


def _require_depth(matches: Iterable[re.Match[bytes]], depth: int) -> None:
    """Raise ValueError if opening brackets (group 1) and closing ones (group 2) nest deeper."""
    level = 0
    for match in matches:
        level += (match[1] is not None) - (match[2] is not None)
        if level > depth:
            raise ValueError(f"nested more than {depth} deep")


def _single(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        seen = set[str]()
        twice = next(name for name, _ in pairs if name in seen or seen.add(name))
        raise ValueError(f"the key {twice[:40]!r} twice")
    return found


def _finite(written: str) -> float:
    value = float(written)
    if value in (float("inf"), float("-inf")):
        raise ValueError(f"{written[:40]} is too large for a number")
    return value


def refuse_constant(name: str) -> NoReturn:
    """Refuse NaN and Infinity, which Python's JSON parser accepts."""
    raise ValueError(f"{name} is not a JSON number")


def logged(blocks: Iterable[bytes], say: Callable[[int], None]) -> Iterator[bytes]:
    """Yield blocks; now and then, `say` how many bytes were read."""
    done, said = 0, time.monotonic()
    for block in blocks:
        yield block
        done += len(block)
        if time.monotonic() - said > EVERY:
            said = time.monotonic()
            say(done)
