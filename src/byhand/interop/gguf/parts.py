"""A GGUF in parts, NAME-00001-of-00003.gguf and so on, read as one file.

Each part has its number, from 0, the number of parts, and the total number of tensors. The first has the metadata.

Source      https://github.com/ggml-org/llama.cpp/blob/master/tools/gguf-split/README.md
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from byhand.errors import DataError
from byhand.files.weights import OpenFile
from byhand.interop.gguf.file import ALIGN, GGUF
from byhand.interop.settings import quoted

PART = re.compile(r"(.+)-([0-9]{5})-of-([0-9]{5})\.gguf")
NUMBER, COUNT, TENSORS = "split.no", "split.count", "split.tensors.count"
MOST = 500  # parts, which are all open at once
JOIN = "Download all parts into one folder, or join them: llama-gguf-split --merge."


def models(paths: list[Path]) -> list[Path]:
    """Return one path for each model, in order: the file, or its first existing part."""
    first: dict[str, Path] = {}
    for path in sorted(paths):
        part = PART.fullmatch(path.name)
        first.setdefault(f"{part[1]} {part[3]}" if part else path.name, path)
    return list(first.values())


@contextmanager
def opened(path: Path) -> Iterator[GGUF]:
    """Yield a file, or all parts of its model joined. DataError unless all exist and match."""
    with ExitStack() as stack:
        file = GGUF(stack.enter_context(OpenFile(path)))
        named, count = PART.fullmatch(path.name), file.keys.get(COUNT, 0)
        if count in (0, 1) and not file.keys.get(NUMBER) and (named is None or int(named[3]) == 1):
            parts = [file]
        elif named is None or (int(named[2]) - 1, int(named[3])) != (file.keys.get(NUMBER), count):
            said = ", ".join(f"{key} {quoted(file.keys.get(key))}" for key in (NUMBER, COUNT))
            raise DataError(
                f"{path} is one part of a model, but its name and its keys ({said}) do not say which. {JOIN}"
            )
        elif count > MOST:
            raise DataError(f"{path} is one of {count:,} parts. {JOIN}")
        else:
            names = [f"{named[1]}-{i + 1:05d}-of-{named[3]}.gguf" for i in range(int(named[3]))]
            for name in names:
                if not (path.parent / name).exists():
                    raise DataError(f"{path} is one of {count} parts, and {name} is missing. {JOIN}")
            parts = [GGUF(stack.enter_context(OpenFile(path.parent / name))) for name in names]
        yield _joined(parts)


def _joined(parts: list[GGUF]) -> GGUF:
    """Return the first part with the tensors of all."""
    whole = parts[0]
    for i, part in enumerate(parts[1:], start=1):
        due = whole.keys | {NUMBER: i, COUNT: len(parts)}
        odd = [key for key in (NUMBER, COUNT) if part.keys.get(key) != due[key]]
        odd += [key for key, value in part.keys.items() if key != ALIGN and value != due.get(key)]
        if odd := odd + sorted(part.tensors.keys() & whole.tensors.keys()):
            raise part.file.damaged(f"as part {i + 1} of {len(parts)} it does not fit the first: {odd[0][:80]!r}")
        whole.tensors |= part.tensors
        whole.files |= dict.fromkeys(part.tensors, part.file)
    count = whole.keys.get(TENSORS, None if len(parts) > 1 else len(whole.tensors))
    if count != len(whole.tensors):
        raise whole.file.damaged(f"{TENSORS} is {quoted(count)}, but there are {len(whole.tensors):,} tensors")
    return whole
