"""`byhand import`: a model of another program becomes a run folder."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from byhand.cli.arguments.parsing import parse
from byhand.cli.arguments.settings import Positional
from byhand.cli.terminal.say import say, show
from byhand.cli.terminal.shown import shown
from byhand.errors import ConfigError, command
from byhand.files import run_folder
from byhand.interop import exchange
from byhand.quantities import counted


@dataclass(frozen=True)
class Options:
    """Turn a model that another program wrote into a run."""

    path: Positional[Path]
    """A Hugging Face folder (gpt2, llama, mistral, qwen2, qwen3, phi3, stablelm, gpt_neox, olmo2, gpt_neo,
    gemma, gemma3_text, smollm3), a GGUF (F32, F16, BF16, F64, Q8_0, Q4_0, Q4_K, Q6_K; with byhand[gguf] in any type),
    a model file of llm.c or llama2.c, a nanoGPT ckpt.pt, or the .bin of the original program."""
    out: Path
    """The run folder: new or empty."""
    base: Path | None = None
    """The base model of a PEFT adapter: a run, or anything that can be imported. The adapter is merged into it."""
    tokenizer: str = ""
    """A tokenizer.json, SentencePiece's tokenizer.model, llama2.c's tokenizer.bin, a folder with one (or with
    vocab.json and merges.txt), or bytes; the model's own if not given."""


def main(arguments: list[str]) -> int:
    """Run the command."""
    options = parse(Options, arguments, "byhand import")
    if options.out == Path():
        raise ConfigError("--out names no folder. Use a path, as in --out runs/gpt2.")
    run_folder.require_free(options.out, "`byhand info {}` says what that one holds")
    model, tokenizer = exchange.imported(options.path, options.tokenizer, options.base)
    exchange.save_as_run(model, tokenizer, options.out)
    m, run = model.config, str(options.out)
    say(
        f"{shown(run, 200)}: {model.source}, {sum(a.size for a in model.arrays.values()):,} parameters "
        f"({counted(m.n_layers, 'layer')}, {counted(m.n_heads, 'head')}, width {m.d_model}, context {m.seq_len}), "
        f"tokens: {shown('; '.join([tokenizer.kind, *map(' '.join, tokenizer.described().items())]))}"
    )
    chats = bool(tokenizer.conventions.templates)
    sample = command("byhand", "chat", run) if chats else command("byhand", "sample", run, "--prompt", "The ")
    tune = command("byhand", "train", "--init-from", run, "--data", "TEXT")
    show(f"Try: {shown(sample)}\nor:  {shown(tune)}")
    return 0
