"""`byhand tokenizer train|encode|decode|inspect|convert`: byte-pair encoding, learnt from a text or read."""

from __future__ import annotations

import sys
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from byhand.cli.arguments.parsing import run_subcommand, text_bytes
from byhand.cli.arguments.settings import Positional, Switch
from byhand.cli.terminal.say import say, show, show_json
from byhand.cli.terminal.shown import shown
from byhand.corpus.documents import Reading
from byhand.corpus.text_file import blocks
from byhand.corpus.texts import open_text
from byhand.errors import DataError
from byhand.files.reading import parse_integer
from byhand.quantities import duration
from byhand.tokenizers import forms
from byhand.tokenizers.bpe import BytePairTokenizer
from byhand.tokenizers.tokenizer import Tokenizer
from byhand.tokenizers.training import train

LONGEST = 1 << 26  # bytes on standard input
SHOWN = 10  # merges and tokens that `inspect` lists
Splitting = Literal["gpt2", "gpt4", "qwen2", "smollm"]


@dataclass(frozen=True)
class TrainingOptions:
    """Learn a vocabulary from a text: 256 bytes, repeated merges of the commonest pair, then special tokens.

    Among equally common pairs the one with the smallest left id is merged, then the one with the smallest right id.
    """

    text: Positional[str]
    """A file (text, JSON lines, parquet, also compressed), a folder, a pattern like "books/*.txt", - for standard
    input, python-stdlib, or shakespeare."""
    vocab_size: int
    """Number of tokens, including the bytes and the special tokens."""
    out: Path
    """NAME.json (Hugging Face), NAME.tiktoken (ranks), or a folder (vocab.json and merges.txt)."""
    split: Splitting = "gpt4"
    """How text is split into words, which no token crosses: as in GPT-2, GPT-4, Qwen2 or SmolLM."""
    special: tuple[str, ...] = ()
    """Strings that are one token each wherever they occur, such as <|endoftext|>."""
    reading: Reading = field(default_factory=Reading)


@dataclass(frozen=True)
class File:
    """Reading the file."""

    tokenizer: Positional[Path]
    """A tokenizer's file or folder."""
    split: Splitting | None = None
    """How text is split, if the file does not say (.tiktoken, vocab.json)."""
    special: tuple[str, ...] = ()
    """Special tokens, if the file does not say."""

    def read(self) -> Tokenizer:
        """Return the tokenizer."""
        return forms.read(self.tokenizer, self.split or "", self.special)


@dataclass(frozen=True)
class EncodeOptions:
    """Print the ids of a text."""

    file: File
    text: str = "-"
    """The text; - reads it from standard input."""
    json: Switch = False
    """Print one JSON list."""


@dataclass(frozen=True)
class DecodeOptions:
    """Write the bytes that ids stand for, unchanged."""

    tokenizer: Positional[Path]
    """A tokenizer's file or folder."""
    ids: Positional[tuple[str, ...]] = ()
    """Ids; from standard input if none are given."""
    special: tuple[str, ...] = ()
    """Special tokens, if the file does not say."""


@dataclass(frozen=True)
class InspectOptions:
    """Show what a tokenizer holds, or the tokens of a text."""

    file: File
    text: str = ""
    """Show the tokens of this text; - reads it from standard input."""
    json: Switch = False
    """Print one JSON object."""


@dataclass(frozen=True)
class ConvertOptions:
    """Write a tokenizer in another format, with the same ids; ranks store neither special tokens nor the split."""

    file: File
    out: Path
    """NAME.json (Hugging Face), NAME.tiktoken (ranks), or a folder (vocab.json and merges.txt)."""


def main(arguments: list[str]) -> int:
    """Run the subcommand."""
    return run_subcommand(SUBCOMMANDS, arguments, "byhand tokenizer")


def _train(options: TrainingOptions) -> int:
    forms.require_place(options.out, options.split)
    text, begun = open_text(options.text, options.reading), time.monotonic()
    content = (block.tobytes() for block in blocks(text.content))
    tokenizer = train(content, options.vocab_size, options.split, options.special, len(text.content), text.documents)
    forms.write(tokenizer, options.out)
    say(
        f"{shown(options.out, 200)}: {tokenizer.vocab_size:,} tokens learnt from {shown(text.name, 200)} "
        f"({len(text.content):,} bytes) in {duration(time.monotonic() - begun)}"
    )
    return 0


def _encode(options: EncodeOptions) -> int:
    ids = options.file.read().encode(_text(options.text))
    if options.json:
        show_json(ids)
    else:
        show(" ".join(map(str, ids)))
    return 0


def _decode(options: DecodeOptions) -> int:
    given = options.ids or _standard_input().decode(errors="replace").replace(",", " ").strip(" []\n").split()
    ids = [parse_integer(written, "the id") for written in given]
    content = forms.read(options.tokenizer, "", options.special).decode(ids)
    sys.stdout.flush()
    sys.stdout.buffer.write(content)
    sys.stdout.buffer.flush()
    return 0


def _inspect(options: InspectOptions) -> int:
    tokenizer = options.file.read()
    facts = _tokens(tokenizer, _text(options.text)) if options.text else _facts(tokenizer)
    if options.json:
        show_json(facts, indent=2)
        return 0
    for name, value in facts.items():
        if isinstance(value, list):
            show(f"{name}:")
            for line in value:
                show("  " + "  ".join(f"{shown(cell):<8}" for cell in line).rstrip())
        else:
            show(f"{name:<16} {f'{value:,}' if type(value) is int else shown(value)}")
    return 0


def _convert(options: ConvertOptions) -> int:
    forms.require_form(options.out)
    tokenizer = options.file.read()
    forms.require_place(options.out, tokenizer.split.name if isinstance(tokenizer, BytePairTokenizer) else "gpt2")
    forms.write(tokenizer, options.out)
    return 0


def _facts(tokenizer: Tokenizer) -> dict[str, Any]:
    """Return a tokenizer's kind, sizes, first merges and longest tokens."""
    facts: dict[str, Any] = {"kind": tokenizer.kind, "tokens": tokenizer.vocab_size, "sha256": tokenizer.digest}
    facts |= tokenizer.described()
    if isinstance(tokenizer, BytePairTokenizer):
        facts |= {"split": tokenizer.split.name, "merges": len(tokenizer.pairs)}
        if tokenizer.split.steps:
            facts["patterns"] = [[behavior, pattern] for pattern, behavior in tokenizer.split.steps]
        facts["first merges"] = [
            [new, f"{_seen(tokenizer, left)} + {_seen(tokenizer, right)}"]
            for (left, right), (_, new) in list(tokenizer.pairs.items())[:SHOWN]
        ]
    if tokenizer.special:
        facts["special"] = [[token, text] for text, token in tokenizer.special.items()]
    longest = sorted(tokenizer.token_bytes, key=lambda token: (-len(tokenizer.token_bytes[token]), token))
    facts["longest"] = [[token, _seen(tokenizer, token)] for token in longest[:SHOWN]]
    return facts


def _tokens(tokenizer: Tokenizer, text: bytes) -> dict[str, Any]:
    """Return the tokens of a text."""
    ids = tokenizer.encode(text)
    return {
        "bytes": len(text),
        "tokens": len(ids),
        "bytes per token": f"{len(text) / max(1, len(ids)):.3f}",
        "text": [[token, _seen(tokenizer, token)] for token in ids],
    }


def _seen(tokenizer: Tokenizer, token: int) -> str:
    """Return a token's text in quotes; bytes of an incomplete character as \\x.."""
    return repr(tokenizer.token_bytes[token].decode(errors="backslashreplace"))


def _text(text: str) -> bytes:
    return _standard_input() if text == "-" else text_bytes(text, "--text")


def _standard_input() -> bytes:
    content = sys.stdin.buffer.read(LONGEST + 1)
    if len(content) > LONGEST:
        raise DataError(f"standard input holds more than {LONGEST:,} bytes. Use a part of it.")
    return content


SUBCOMMANDS = {
    "train": (TrainingOptions, _train),
    "encode": (EncodeOptions, _encode),
    "decode": (DecodeOptions, _decode),
    "inspect": (InspectOptions, _inspect),
    "convert": (ConvertOptions, _convert),
}
