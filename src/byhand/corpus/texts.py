"""The text that --data names: one file where it is, or documents that are written to one (see `prepared`)."""

from __future__ import annotations

import hashlib
import logging
import os
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import BinaryIO

import numpy as np

from byhand.corpus.decoding import NoTextError
from byhand.corpus.documents import Document, Reading, refused
from byhand.corpus.prepared import Prepared, prepared
from byhand.corpus.sources import Excluded, cached_download, download_folder, files_of, library
from byhand.corpus.text_file import TextFile, blocks
from byhand.errors import DataError
from byhand.quantities import counted
from byhand.tokenizers.tokenizer import utf8

log = logging.getLogger(__name__)
SHAKESPEARE_URL = "https://raw.githubusercontent.com/karpathy/char-rnn/master/data/tinyshakespeare/input.txt"
SHAKESPEARE_SHA256 = "86c4e6aa9db7c042ec79f339dcb96d42b0075e16b8fc2e86bf0ca57e2dc565ed"
STDIN, LIBRARY, SHAKESPEARE = "-", "python-stdlib", "shakespeare"
MEMORY = "text from memory"
Texts = str | bytes | Iterable[str | bytes]  # one, or several documents
NAMED = 5  # skipped files that messages name


@dataclass(frozen=True)
class Text:
    """A text's bytes, its name, and the file that holds them (None: it lasts as long as the process).

    documents  whether it consists of documents, each with an end mark (see `prepared`)
    training   how many of them come before those for validation; 0: validation is the end of the text
    """

    content: np.ndarray | TextFile
    name: str
    path: Path | None = None
    documents: bool = False
    training: int = 0

    @cached_property
    def sha256(self) -> str:
        """The SHA-256 of the bytes; reads all of them."""
        digest = hashlib.sha256()
        for block in blocks(self.content):
            digest.update(block.data)
        return digest.hexdigest()


@dataclass(frozen=True)
class Validation:
    """The validation part: a share of the documents' bytes, or documents of its own."""

    share: float = 0.0
    sources: Sequence[str] = ()


def open_text(
    sources: str | Sequence[str], reading: Reading | None = None, validation: Validation | None = None
) -> Text:
    """Return the text that --data names.

    sources  files (see `documents`), folders (their text files in order of path), patterns such as `books/*.txt`; or
             one of `-` (standard input), `python-stdlib` (the running interpreter's library), and `shakespeare`
             (1.1 MB, downloaded once)

    One file of plain text is read where it is. Raises DataError, one line, if there is nothing to read.
    """
    reading, val = reading or Reading(), validation or Validation()
    named = [sources] if isinstance(sources, str) else list(sources)
    name = _listed(named)
    alone = named[0] if len(named) == 1 else ""
    for other in (*named, *val.sources) if not alone else val.sources:
        if other in (STDIN, LIBRARY, SHAKESPEARE) and not os.path.exists(other):
            raise DataError(f"{other} is a text of its own. Name it alone, and no file beside it.")
    excluded = Excluded(reading.exclude)
    held = files_of(val.sources, excluded)
    if reading.exclude and alone in (STDIN, LIBRARY, SHAKESPEARE):
        raise DataError(f"--exclude changes nothing: {alone} is one text. Leave it out.")
    if alone == LIBRARY:
        if not held:
            return Text(np.frombuffer(library(), np.uint8), alone)
        found = iter([Document([library()], alone)])
    elif alone == STDIN:
        name, found = "standard input", reading.of_stream(_standard_input(), "standard input")
    else:
        files = _shakespeare() if alone == SHAKESPEARE else files_of(named, excluded)
        if excluded.unused:
            log.info("--exclude matches no file: %s", _listed(sorted(excluded.unused)))
        if reading.text_field and not any(map(reading.has_fields, (*files, *held))):
            raise DataError(
                f"--text-field changes nothing: {name} has no JSON lines and no parquet. Leave it out, or give the "
                f"files their names, as in a.jsonl."
            )
        if len(files) == 1 and files.get(path := next(iter(files))) and not held and reading.plain(path):
            return on_disk(path, name)
        found = _documents(files, reading)
    made = prepared(found, name, val.share, _documents(held, reading) if held else None, reading.what)
    _say(name, made, validation is not None)
    return Text(made.content, name, None, made.documents > 1, made.training)


def in_memory(texts: Texts, reading: Reading, val: Validation) -> Text:
    """Return a text given in memory: one, or several documents. DataError if there is nothing to read.

    reading  how to read the files of validation
    """
    one, held = isinstance(texts, str | bytes) or not isinstance(texts, Iterable), files_of(val.sources)
    several = [texts] if one else texts
    found = (Document([_bytes(text, number)], f"text {number}") for number, text in enumerate(several, 1))
    made = prepared(found, MEMORY, val.share, _documents(held, reading) if held else None)
    _say(MEMORY, made, True)
    return Text(made.content, MEMORY, None, made.documents > 1, made.training)


def _bytes(text: object, number: int) -> bytes:
    if not isinstance(text, str | bytes):
        raise DataError(
            f"text {number} is of type {type(text).__name__}. Give each text as str, or as UTF-8 in bytes."
        )
    return utf8(text) if isinstance(text, str) else text


def on_disk(path: Path, name: str, documents: bool = False, training: int = 0) -> Text:
    """Return the text of a file; DataError if it is empty or cannot be read."""
    return Text(TextFile(path), name, path.resolve(), documents, training)


def _shakespeare() -> dict[Path, bool]:
    path = cached_download(SHAKESPEARE_URL, SHAKESPEARE_SHA256, download_folder() / "tinyshakespeare.txt")
    return {path: True}


def _standard_input() -> BinaryIO:
    if sys.stdin is None:
        raise DataError("- stands for standard input, which is closed. Pipe a text in, or name a file.")
    return sys.stdin.buffer


def _documents(files: Mapping[Path, bool], reading: Reading) -> Iterator[Document]:
    """Yield the documents of files. If a file turns unreadable, its last document raises the reason when read."""
    for path, named in files.items():
        try:
            yield from reading.documents(path, named or reading.strict)
        except DataError as error:
            if named or reading.strict:
                raise
            yield Document(refused(error), str(path), False)


def _say(name: str, made: Prepared, splits: bool) -> None:
    """Say which files were skipped, and what validation takes."""
    for how, files in made.how.items():
        log.info("%s read as %s: %s", counted(len(files), "file"), how, _listed(files))
    others = [each for each in made.skipped if not isinstance(each.why, NoTextError)]
    for each in others[:NAMED]:
        log.info("skipped%s: %s", f" {each.documents:,} documents" * (each.documents > 1), each.why)
    binary = [each for each in made.skipped if isinstance(each.why, NoTextError)]
    for why, skipped in (("not text", binary), ("for like reasons", others[NAMED:])):
        if skipped:
            log.info("skipped, %s: %s", why, _listed([each.file for each in skipped]))
    if made.documents > 1:
        val = f"{made.documents - made.training:,} of them" if made.training else "the end of the text"
        log.info("%s: %s%s", name, counted(made.documents, "document"), f"; validation takes {val}" * splits)


def _listed(names: Sequence[str]) -> str:
    return ", ".join(names[:NAMED]) + (f" and {len(names) - NAMED:,} more" if len(names) > NAMED else "")
