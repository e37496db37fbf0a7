"""A text becomes a corpus: bytes as they are, or tokens, which are encoded once and cached.

A file of the user's cache holds integers of two or four bytes, little-endian, then SHA-256 of the text, of the
tokenizer and of the integers. A file that others could have written, or whose hashes differ, is replaced.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from functools import partial
from hashlib import sha256
from pathlib import Path

import numpy as np

from byhand.corpus.dataset import Corpus
from byhand.corpus.text_file import TextFile, blocks
from byhand.corpus.texts import Text
from byhand.errors import DataError, reason
from byhand.files.reading import logged
from byhand.files.user_cache import cache_folder, write_own
from byhand.tokenizers.byte import BYTES, ByteTokenizer
from byhand.tokenizers.tokenizer import END, Tokenizer

log = logging.getLogger(__name__)
SEAL = 3 * 32  # bytes: three SHA-256


def corpus_of(text: Text, tokenizer: Tokenizer = BYTES) -> Corpus:
    """Return the corpus of a text. DataError if the tokenizer has no ids for it, or the text changes meanwhile."""
    if isinstance(tokenizer, ByteTokenizer):
        return Corpus(text.content, tokenizer, text.name, text.training)
    key = bytes.fromhex(text.sha256) + _how(text, tokenizer)
    encoded = () if tokenizer.faithful else [partial(_size, part, tokenizer) for part in _parts(text)]

    def corpus(tokens: np.ndarray | TextFile) -> Corpus:
        return Corpus(tokens, tokenizer, text.name, _ends(text, tokenizer), encoded)

    folder = cache_folder()
    if folder is None:
        return corpus(tokenizer.array(_content(text, tokenizer)))
    path = folder / "tokens" / f"{sha256(key).hexdigest()}.bin"
    tokens = _kept(path, tokenizer.dtype, key)
    if tokens is None:
        log.info("%s: encoding %s bytes once", text.name, f"{len(text.content):,}")
        try:
            write_own(path, _sealed(text, tokenizer, key))
            tokens = _kept(path, tokenizer.dtype, key)
        except OSError as error:
            log.info("%s is not kept: %s", path, reason(error))
    return corpus(tokenizer.array(_content(text, tokenizer)) if tokens is None else tokens)


def _how(text: Text, tokenizer: Tokenizer) -> bytes:
    """Return a digest of everything but the text that determines its tokens."""
    digest, added = bytes.fromhex(tokenizer.ids_digest), b"documents" if text.documents else b""
    if tokenizer.conventions and text.documents:
        added += tokenizer.end_text
    if tokenizer.begin_text:
        added += END + tokenizer.begin_text
    return sha256(digest + added).digest() if added else digest


def _kept(path: Path, dtype: np.dtype, key: bytes) -> TextFile | None:
    """Return the tokens of a file, or None unless it is this user's, of this key, and undamaged."""
    with suppress(OSError, DataError):
        file = TextFile(path, dtype)
        file.require_own()
        count = len(file) - SEAL // dtype.itemsize
        if count < 1 or (seal := file[count:].tobytes())[: len(key)] != key:
            return None
        tokens, digest = file.part(0, count), sha256()
        for block in blocks(tokens):
            digest.update(block.data)
        return tokens if seal == key + digest.digest() else None
    return None


def _sealed(text: Text, tokenizer: Tokenizer, key: bytes) -> Iterator[bytes]:
    """Yield what the file holds."""
    digest = sha256()

    def say(done: int) -> None:
        log.info("encoded %s of %s bytes", f"{done:,}", f"{len(text.content):,}")

    for block in tokenizer.encode_blocks(logged(_content(text, tokenizer), say)):
        ids = np.asarray(block, tokenizer.dtype)
        digest.update(ids.data)
        yield ids.tobytes()
    yield key + digest.digest()


def _content(text: Text, tokenizer: Tokenizer) -> Iterator[bytes]:
    """Yield the text, each document between the tokenizer's own beginning and end."""
    begin = before = tokenizer.begin_text
    left = len(text.content)
    for block in blocks(text.content):
        left -= len(block)
        content = block.tobytes()
        if text.documents:
            last = not left and content.endswith(END)
            content = content.replace(END, tokenizer.end_text + begin)
            content = content.removesuffix(begin) if last else content
        yield before + content
        before = b""


def _size(text: Text, tokenizer: Tokenizer) -> int:
    """Return how many bytes are encoded."""
    return sum(map(len, _content(text, tokenizer)))


def _parts(text: Text) -> Iterator[Text]:
    """Yield the documents for training and those for validation, each as one text; the text itself if it has none."""
    content, left, cut = text.content, text.training, 0
    for block in blocks(content) if left else ():
        ends = np.flatnonzero(block == END[0])
        if len(ends) >= left:
            cut += int(ends[left - 1]) + 1
            break
        left, cut = left - len(ends), cut + len(block)
    for begin, end in ((0, cut), (cut, len(content))) if cut else ((0, len(content)),):
        part = content.part(begin, end) if isinstance(content, TextFile) else content[begin:end]
        yield replace(text, content=part)


def _ends(text: Text, tokenizer: Tokenizer) -> int:
    """Return how many end-of-document tokens come before the documents for validation.

    A document may contain the text of that token itself, as in some corpora.
    """
    if not text.training or tokenizer.end_text == END:
        return text.training
    end, left, found, before = tokenizer.end_text, text.training, text.training, b""
    for block in blocks(text.content):
        ends = np.flatnonzero(block == END[0])
        last = len(ends) >= left
        content = before + block[: ends[left - 1] if last else None].tobytes()
        found += content.count(end)
        if last:
            break
        left, before = left - len(ends), content[1 - len(end) :]
    return found
