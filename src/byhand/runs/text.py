"""The text of a run: its tokens, its file, and the record of it that checkpoints keep."""

from __future__ import annotations

import logging
import os
from collections.abc import Mapping
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np

from byhand.config import TrainConfig
from byhand.corpus.dataset import Corpus
from byhand.corpus.documents import Reading
from byhand.corpus.encoding import corpus_of
from byhand.corpus.text_file import TextFile, blocks
from byhand.corpus.texts import Text, Texts, Validation, in_memory, on_disk, open_text
from byhand.errors import CheckpointError, DataError, reason
from byhand.files import writing
from byhand.runs.contents import Checkpoint
from byhand.tokenizers.tokenizer import Tokenizer

log = logging.getLogger(__name__)
CORPUS = "corpus.bin"
LARGE = 1 << 28  # bytes that take long to hash
SPOT, SPOTS = 1 << 16, 64  # bytes of a sample, and samples, by which hosts compare their texts


def open_corpus(config: TrainConfig, tokenizer: Tokenizer, texts: Texts | None = None) -> tuple[Text, Corpus]:
    """Return the text that --data names, or one of `texts`, and its tokens, all in the model's vocabulary."""
    data = config.data
    reading = Reading(data.text_field, data.encoding, data.exclude, data.strict)
    val = Validation(data.val_fraction, data.val_sources)
    if data.chat:
        from byhand.corpus.chats import open_chats

        text = open_chats(data.sources, val, reading)
    else:
        text = open_text(data.sources, reading, val) if texts is None else in_memory(texts, reading, val)
    corpus = tokens_of(text, config, tokenizer)
    corpus.require_vocabulary(config.model.vocab_size)
    return text, corpus


def tokens_of(text: Text, config: TrainConfig, tokenizer: Tokenizer) -> Corpus:
    """Return the corpus of a run's text, which may be conversations."""
    if not config.data.chat:
        return corpus_of(text, tokenizer)
    from byhand.corpus.chats import chats_of

    return chats_of(text, tokenizer, config.length)


def stored(text: Text, run: Path) -> Text:
    """Write a text without a file into the run folder, so that a resumed run reads the same bytes."""
    if text.path:
        return text
    path = run / CORPUS
    if os.path.lexists(path):  # from a killed attempt, or the user's
        if path.is_symlink() or not _holds(path, text.content):
            raise DataError(f"{path} exists already, with another text. Move it away, or choose another --out.")
        return on_disk(path, text.name, text.documents, text.training)
    try:
        writing.create(path, (block.data for block in blocks(text.content)))
    except OSError as error:
        raise DataError(
            f"cannot write {error.filename}: {reason(error)}. Free some space, or choose another folder with --out."
        ) from None
    return on_disk(path, text.name, text.documents, text.training)


def _holds(path: Path, content: np.ndarray | TextFile) -> bool:
    """Return whether a file has these bytes; DataError if it cannot be read."""
    found = TextFile(path)
    pairs = zip(blocks(found), blocks(content), strict=False)
    return len(found) == len(content) and all(np.array_equal(one, other) for one, other in pairs)


def text_of(start: Checkpoint, run: Path, moved: str | tuple[str, ...] | None) -> Text:
    """Return the text of a run; a run saved through the Python API may not name one.

    moved  the text's new file
    """
    training = start.state["text"].get("training_documents")
    path = _path_of(start, run, moved)
    return on_disk(path, ", ".join(start.config.data.sources), training is not None, training or 0)


def _path_of(start: Checkpoint, run: Path, moved: str | tuple[str, ...] | None) -> Path:
    if not start.state["text"] and "imported" in start.state:
        raise CheckpointError(f"{run} was imported, not trained. Tune it with `byhand train --init-from {run}`.")
    if moved is not None:
        if not isinstance(moved, str) and len(moved) == 1:
            (moved,) = moved
        if not moved or not isinstance(moved, str):
            what = "several files, but a run has one text" if moved else "no file"
            raise DataError(f"--data names {what}. Say where the run's text is, or leave it out.")
        return Path(moved)
    known = start.state["text"].get("path")
    if not isinstance(known, str) or not known:
        raise CheckpointError(f"{run} does not say which text it was trained on. Name it with --data FILE.")
    return run / CORPUS if known == CORPUS else Path(known)


def require_same_text(start: Checkpoint, text: Mapping[str, Any]) -> None:
    """Raise CheckpointError if a run would go on with another text than it began with."""
    before = start.state.get("text", {})
    if before.get("sha256") != text.get("sha256"):
        raise CheckpointError(
            f"the text changed since the run began: {before.get('path')} had {before.get('bytes')} bytes and SHA-256 "
            f"{str(before.get('sha256'))[:12]}…. Restore it, or start a new run."
        )


def identity(text: Text, run: Path) -> dict[str, Any]:
    """Return the record of a text that checkpoints keep: path, length and hash; of documents those for training."""
    if len(text.content) > LARGE:
        log.info("reading %.200s once for its SHA-256 (%.1f GB)", text.name, len(text.content) / 1e9)
    inside = text.path == run.resolve() / CORPUS
    record = {"path": CORPUS if inside else str(text.path), "bytes": len(text.content), "sha256": text.sha256}
    return record | ({"training_documents": text.training} if text.documents else {})


def spot_check(text: Text) -> str:
    """Return a text's length and a hash of samples, so that hosts detect different texts without reading all."""
    size, digest = len(text.content), sha256()
    for begin in range(0, size, max(SPOT, size // SPOTS)):
        digest.update(np.ascontiguousarray(text.content[begin : min(size, begin + SPOT)]).data)
    return f"{size} bytes, {digest.hexdigest()}"
