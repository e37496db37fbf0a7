"""Many documents become one text: each ends with a NUL character, those for validation come last.

No document contains a NUL (`documents` refuses it), so a NUL marks the end of each; tokenizers put their end token
there. Validation takes whole documents, drawn by the hash of their bytes: equal documents are on one side, and adding
a document moves no other. If that misses the wanted share by half, as with a few long documents, it takes the end of
the text instead.
"""

from __future__ import annotations

import os
import tempfile
from array import array
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import IO, NamedTuple

import numpy as np

from byhand.corpus.documents import BLOCK, Document, Reading
from byhand.corpus.text_file import TextFile
from byhand.errors import DataError, reason
from byhand.tokenizers.tokenizer import END


class Skipped(NamedTuple):
    """Unreadable documents of a file, and the error of the first."""

    file: str
    documents: int
    why: DataError


@dataclass(frozen=True)
class Prepared:
    """Documents in one temporary file, deleted with the last reference to it.

    training  documents before those for validation; 0: validation is the end of the text
    skipped   unreadable documents of files that were not named themselves
    how       files by each way of reading that should be reported
    """

    content: TextFile
    documents: int
    training: int
    skipped: list[Skipped]
    how: dict[str, list[str]]


def prepared(
    documents: Iterable[Document], name: str, val_fraction: float = 0.0, val: Iterable[Document] | None = None,
    what: str = Reading.what,
) -> Prepared:  # fmt: skip
    """Write documents to a temporary file; empty ones are left out.

    val_fraction  the share of the bytes that validation takes
    val           its documents, if it has its own
    what          the noun for a document in messages

    Raises DataError if there are none, or no room for them.
    """
    try:
        with Spool() as spool:
            spool.add(documents)
            own = len(spool.ends)
            if not own:
                why = f" {next(iter(spool.skipped.values())).why}" if spool.skipped else ""
                raise DataError(f"{name} holds no {what}.{why or ' Name a file or folder that does.'}")
            if val is not None:
                spool.add(val)
                if len(spool.ends) == own:
                    raise DataError(f"the validation part of {name} holds no {what}. Use another --val-data.")
                return Prepared(spool.finish(name), len(spool.ends), own, *spool.notes)
            apart = spool.drawn(val_fraction)
            training = own - int(apart.sum())
            if training == own:
                return Prepared(spool.finish(name), own, 0, *spool.notes)
            with Spool() as ordered:
                for chosen in (~apart, apart):
                    spool.copy(chosen, ordered.file)
                return Prepared(ordered.finish(name), own, training, *spool.notes)
    except OSError as error:
        raise DataError(
            f"cannot write {name} as one text: {reason(error)}. Set TMPDIR to a folder with room."
        ) from None


def _holds_a_nul(name: str) -> DataError:
    return DataError(
        f"{name} holds a NUL, which is the end of a document where there are several. Name it alone, or leave it out."
    )


class Spool:
    """A temporary file of documents.

    ends     of the documents, in bytes, after their NUL
    hashes   of each, 64 bits
    skipped  files with unreadable documents
    how      files by each way of reading that should be reported
    holding  the first file with a NUL, which `--encoding bytes` lets pass
    """

    def __init__(self) -> None:
        self.file: IO[bytes] = tempfile.TemporaryFile(buffering=BLOCK)  # noqa: SIM115 (closed by `with`)
        self.ends, self.hashes = array("q"), array("Q")
        self.skipped: dict[str, Skipped] = {}
        self.how: dict[str, list[str]] = {}
        self.holding = ""

    def __enter__(self) -> Spool:
        return self

    def __exit__(self, *error: object) -> None:
        self.file.close()

    @property
    def notes(self) -> tuple[list[Skipped], dict[str, list[str]]]:
        """What to report about the files: `skipped` and `how`."""
        return list(self.skipped.values()), self.how

    def add(self, documents: Iterable[Document]) -> None:
        """Append documents that are not empty."""
        for document in documents:
            begin = self.ends[-1] if self.ends else 0
            try:
                end, digest = self._write(document, begin)
            except DataError as error:
                if document.named:
                    raise
                before = self.skipped.get(document.file, Skipped(document.file, 0, error))
                self.skipped[document.file] = before._replace(documents=before.documents + 1)
                self.file.seek(begin)
                self.file.truncate()
                continue
            if document.how and document.file not in (files := self.how.setdefault(document.how, [])):
                files.append(document.file)
            if end > begin:
                self.ends.append(end + self.file.write(END))
                self.hashes.append(int.from_bytes(digest[:8], "little"))
            if self.holding and len(self.ends) > 1:
                raise _holds_a_nul(self.holding)

    def _write(self, document: Document, end: int) -> tuple[int, bytes]:
        """Return where the document ends, and the hash of its bytes."""
        digest = sha256()
        for block in document.blocks:
            if END in block:
                if not document.named:
                    raise _holds_a_nul(document.file)
                self.holding = self.holding or document.file
            digest.update(block)
            end += self.file.write(block)
        return end, digest.digest()

    def drawn(self, share: float) -> np.ndarray:
        """Return booleans: the documents of least hash that make up this share of the bytes; none if half off."""
        ends = np.frombuffer(self.ends, np.int64)
        sizes, hashes = np.diff(ends, prepend=0), np.frombuffer(self.hashes, np.uint64)
        order = hashes.argsort()
        beyond = np.flatnonzero(sizes[order].cumsum() > share * ends[-1])[0]  # the last one always is
        chosen = hashes < hashes[order[beyond]]  # equal documents are on one side
        return chosen if sizes[chosen].sum() > share * ends[-1] / 2 else np.zeros_like(chosen)

    def copy(self, chosen: np.ndarray, to: IO[bytes]) -> None:
        """Write the chosen documents, in their order."""
        self.file.flush()
        for begin, end in _stretches(chosen, np.frombuffer(self.ends, np.int64)):
            self.file.seek(begin)
            while begin < end:
                begin += to.write(self.file.read(min(BLOCK, end - begin)))

    def finish(self, name: str) -> TextFile:
        """Return the file for reading; the spool takes no more documents. A single one needs no end mark."""
        if len(self.ends) == 1:
            self.file.truncate(self.ends[0] - len(END))
        self.file.flush()
        return TextFile(Path(name), descriptor=os.dup(self.file.fileno()))


def _stretches(chosen: np.ndarray, ends: np.ndarray) -> Iterator[tuple[int, int]]:
    """Yield (begin, end) in bytes of each stretch of chosen documents."""
    edges = np.flatnonzero(np.diff(chosen.astype(np.int8), prepend=0, append=0))
    for first, last in edges.reshape(-1, 2).tolist():
        yield (int(ends[first - 1]) if first else 0), int(ends[last - 1])
