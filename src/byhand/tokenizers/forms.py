"""Tokenizers in files: other programs' formats, and a run's own.

NAME.json       Hugging Face's tokenizer.json; for reading, a run's own tokenizer.json too
NAME.model      SentencePiece's protobuf, and NAME.bin, llama2.c's form of it: read only
NAME.tiktoken   tiktoken's ranks, without a pre-tokenizer and special tokens
a folder        with tokenizer.json, with tokenizer.model, or with GPT-2's vocab.json and merges.txt
"""

from __future__ import annotations

import errno
import json
import logging
import os
from collections.abc import Sequence
from pathlib import Path

from byhand.errors import DataError, brief, command, reason
from byhand.files.reading import parse_json
from byhand.files.writing import create_all, remove_left_over
from byhand.tokenizers import vocab_files
from byhand.tokenizers.bpe import BytePairTokenizer
from byhand.tokenizers.hugging_face import Known, as_hugging_face, of_hugging_face
from byhand.tokenizers.ranks import as_ranks, of_ranks
from byhand.tokenizers.registry import DEPTH, MOST, file_content, restored
from byhand.tokenizers.sentencepiece import SentencePieceTokenizer
from byhand.tokenizers.sentencepiece_files import of_llama2_c, of_model
from byhand.tokenizers.symbols import ordinary, visible_bytes
from byhand.tokenizers.tokenizer import Tokenizer

log = logging.getLogger(__name__)
OURS, VOCAB, MERGES = "tokenizer.json", "vocab.json", "merges.txt"
RANKS, MODEL = ".tiktoken", "tokenizer.model"
PIECES = {".model": of_model, ".bin": of_llama2_c}
WHAT = f"Use a {OURS}, ranks that end with {RANKS}, or a folder with {VOCAB} and {MERGES}"


def read(path: Path, split: str = "", special: Sequence[str] = ()) -> Tokenizer:
    """Return the tokenizer of a file or folder.

    split    the pre-tokenizer, if the file has none: by default GPT-4's for ranks, GPT-2's for vocab.json
    special  texts that become additional tokens, if the file has none
    Raises DataError, one line, if the files are damaged, or if byhand cannot represent them.
    """
    if not os.path.lexists(path):
        asked = str(path).replace(":/", "://")  # of an address a path loses a slash
        raise DataError(f"there is no file or folder {asked}, and byhand downloads no tokenizer. {WHAT}.")
    if path.is_dir():
        if not (path / OURS).exists() and (path / MODEL).exists():
            return read(path / MODEL, split, special)
        if not (path / OURS).exists():
            return _of_folder(path, split or "gpt2", special)
        path /= OURS
    content = file_content(path)
    try:
        if path.suffix == RANKS:
            return of_ranks(content, split or "gpt4", special)
        found = PIECES[path.suffix](content) if path.suffix in PIECES else _of_json(content)
    except DataError as error:
        raise DataError(f"{path} is not a tokenizer that byhand can use: {str(error).rstrip('.')}.") from None
    if split or special:
        raise DataError(f"{path} holds its own pre-tokenizer and special tokens. Leave out --split and --special.")
    return found


def _of_json(content: bytes) -> Tokenizer:
    try:
        values = parse_json(content, DEPTH + 4)
    except ValueError as error:
        raise DataError(f"it is not valid JSON ({brief(error)}). {WHAT}") from None
    if not isinstance(values, dict) or not {"model", "kind"} & set(values):
        raise DataError(f"it has no tokens. {WHAT}")
    if "model" in values:
        return of_hugging_face(values)
    return restored(content)


def _of_folder(path: Path, split: str, special: Sequence[str]) -> BytePairTokenizer:
    """Return the tokenizer from vocab.json and merges.txt: symbols that no merge makes are special tokens."""
    if not (path / VOCAB).exists() and not (path / MERGES).exists():
        raise DataError(f"{path} holds no {OURS}, and no {VOCAB} with {MERGES}. Name another folder.")
    vocabulary, merges = vocab_files.read(path / VOCAB, path / MERGES)
    made = {left + right for left, right in merges} | set(visible_bytes())
    alone = {symbol: token for symbol, token in vocabulary.items() if symbol not in made}
    size = max(vocabulary.values(), default=-1) + 1
    alone |= {text: size + k for k, text in enumerate(t for t in special if t not in alone)}
    return BytePairTokenizer(ordinary(vocabulary, merges, alone), merges, split=split, special=alone)


def require_form(path: Path) -> None:
    """Raise DataError unless a tokenizer's file can have this name."""
    if path.suffix not in ("", ".json", RANKS) and not path.is_dir():
        raise DataError(f"{path} is not a tokenizer's name. End it with .json or .tiktoken, or name a folder.")


def require_place(path: Path, split: str) -> None:
    """Raise DataError unless a tokenizer with this split can be written here, and the path is free."""
    require_form(path)
    if path.suffix in (".json", RANKS):
        taken, parent = [path], path.parent
    else:
        if split != "gpt2":
            raise DataError(f"a folder holds GPT-2's pre-tokenizer, not {split}'s. Use --split gpt2, or NAME.json.")
        taken, parent = [path / name for name in (OURS, VOCAB, MERGES)], path
        while not os.path.lexists(parent):  # missing folders will be made
            parent = parent.parent
    remove_left_over(taken[0].parent)
    if there := next(filter(os.path.lexists, taken), None):
        raise DataError(f"{there} exists already. Choose another name with --out.")
    if not parent.is_dir():
        raise DataError(f"{parent} is not a folder. Choose another place with --out.")
    if not os.access(parent, os.W_OK):
        raise DataError(f"cannot write into {parent}: {os.strerror(errno.EACCES)}. Choose another place with --out.")


def write(tokenizer: Tokenizer, path: Path) -> None:
    """Write a tokenizer in the format given by the name. DataError if that format cannot hold it."""
    require_form(path)
    if not isinstance(tokenizer, (BytePairTokenizer, SentencePieceTokenizer)):
        raise DataError(f"a {tokenizer.kind} tokenizer has no file. Use byte-pair encoding.")
    if isinstance(tokenizer, SentencePieceTokenizer) and path.suffix != ".json":
        raise DataError(f"only a .json file holds SentencePiece's pieces. Write {path.with_suffix('.json')}.")
    try:
        contents = _contents(tokenizer, path)
        if path not in contents:
            path.mkdir(parents=True, exist_ok=True)
        if too_long := next((place for place, content in contents.items() if len(content) > MOST), None):
            raise DataError(
                f"{too_long} would hold more than {MOST:,} bytes, the most that is read. Use fewer tokens."
            )
        create_all(next(iter(contents)).parent, [(place.name, content) for place, content in contents.items()])
    except OSError as error:
        raise DataError(f"cannot write {error.filename}: {reason(error)}. Choose another place with --out.") from None


def _contents(tokenizer: Known, path: Path) -> dict[Path, bytes]:
    if isinstance(tokenizer, SentencePieceTokenizer):
        return {path: as_hugging_face(tokenizer)}
    if path.suffix != ".json" and (lost := tokenizer.described()):
        log.warning("the file does not hold how models use the tokens: %s", "; ".join(map(" ".join, lost.items())))
    if path.suffix == RANKS and tokenizer.split.steps:
        raise DataError(
            f"a file of ranks cannot say how the text is cut ({tokenizer.split.name}). Write a .json file."
        )
    if path.suffix == RANKS:
        if tokenizer.special or tokenizer.split.name != "gpt4":
            special = "".join(f" --special {command(text)}" for text in tokenizer.special)
            log.warning(
                "the file holds no pre-tokenizer and no special tokens; give them when you read it: --split %s%s",
                tokenizer.split.name,
                special,
            )
        return {path: as_ranks(tokenizer)}
    if path.suffix == ".json":
        return {path: as_hugging_face(tokenizer)}
    if tokenizer.split.name != "gpt2" or tokenizer.normal or (tokenizer.whole and tokenizer.merges is not None):
        raise DataError("vocab.json and merges.txt are for GPT-2's pre-tokenizer. Write a .json file.")
    vocabulary = sorted(tokenizer.symbols().items(), key=lambda item: item[1])
    lines = ["#version: 0.2", *map(" ".join, tokenizer.listed_merges())]
    return {
        path / VOCAB: json.dumps(dict(vocabulary), ensure_ascii=False).encode(),
        path / MERGES: "".join(f"{line}\n" for line in lines).encode(),
    }
