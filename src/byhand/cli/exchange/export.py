"""`byhand export`: a run's model as files that transformers or llama.cpp load."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from byhand.cli.arguments.parsing import parse
from byhand.cli.arguments.settings import Positional
from byhand.cli.terminal.say import show
from byhand.cli.terminal.shown import shown
from byhand.errors import ConfigError
from byhand.formats.names import Exported
from byhand.interop import exchange
from byhand.runs.contents import Checkpoint


@dataclass(frozen=True)
class Options:
    """Write a run's model and tokenizer for other programs."""

    run: Positional[Path]
    """The run folder, or one of its checkpoints; or a Hugging Face folder, a GGUF, or smollm2."""
    to: Literal["hf", "gguf", "peft"]
    """hf: a folder for transformers. gguf: a file for llama.cpp and its relatives. peft: only the adapter of a run
    with --lora; the other formats merge it into the weights."""
    out: Path
    """The folder to write: new or empty."""
    dtype: Exported = "float32"
    """The weights' number format, also f32, f16, bf16. q8_0 and q4_0 pack the matrices of a GGUF in blocks of 32: 8.5
    and 4.5 bits per number."""
    like: Path | None = None
    """With --to gguf: the GGUF that the run was imported from. Unchanged tensors keep its bytes, whatever their type;
    the others keep its types, or use --dtype where byhand cannot write the type."""


def main(arguments: list[str]) -> int:
    """Run the command."""
    options = parse(Options, arguments, "byhand export")
    for path in exported(options, lambda: exchange.model(options.run, unread=False)):
        show(f"{shown(str(path), 200)} {path.stat().st_size:,} bytes")
    return 0


def exported(options: Options, load: Callable[[], Checkpoint]) -> list[Path]:
    """Export a checkpoint as the options say, and return the files; validate the options before loading."""
    if options.out == Path():
        raise ConfigError("--out names no folder. Use a path, as in --out exported.")
    return exchange.write(load(), options.to, options.out, options.dtype, options.like)
