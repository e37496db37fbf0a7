"""Command lines of every command, inside this process: nothing trains, times or downloads, whatever they say.

What reads and parses runs in earnest; what would go on for long is replaced by an error of its own. Options that
write get names within the attack's own folder only.
"""

from __future__ import annotations

import contextlib
import os
from importlib import import_module
from pathlib import Path
from random import Random
from typing import Any
from unittest import mock

import test_places
from byhand import ModelConfig, TrainConfig
from byhand.cli import main as main_module
from byhand.cli.arguments.settings import settings
from byhand.cli.main import as_process, main
from byhand.cli.measure import bench, plan
from byhand.cli.runs import chat, sample, serve, tokenizer
from byhand.cli.runs import eval as eval_command
from byhand.cli.runs import train as train_command
from byhand.cli.seed import train_gpt_flags, train_gpt_program
from byhand.errors import ByhandError
from byhand.runs import text as run_text
from byhand.tokenizers import forms, training
from cli.inside import write_run
from hostile.outcome import command
from hostile.words import NUMBERS, damaged, hostile

WRITING = ("out", "png", "csv", "plot", "save")
SAFE = (
    "made",
    "made/deeper",
    "x.png",
    "x.svg",
    "x.jpg",
    "",
    ".",
    "file.txt",
    "file.txt/x",
    "n" * 300,
    "a\0b",
    "中 $x",
    "\x1b[2J",
)


def options_of(name: str) -> dict[tuple[str, ...], type[Any]]:
    """Return what a command, or each of its subcommands, takes."""
    module: Any = import_module(f"byhand.cli.{main_module.COMMANDS[name][0]}.{name}")
    if not hasattr(module, "SUBCOMMANDS"):
        return {(name,): module.Options}
    return {(name, each): options for each, (options, _) in module.SUBCOMMANDS.items()}


OPTIONS = {line: options for name in main_module.COMMANDS for line, options in options_of(name).items()}
OPTIONS["train_gpt",] = train_gpt_flags.Flags
COMMANDS = list(OPTIONS)
GOOD = test_places.COMMANDS | {
    "tokenizer train": test_places.COMMANDS["tokenizer"][1:],
    "tokenizer encode": ["encode", "tokens.json", "--text", "the fox"],
    "tokenizer decode": ["decode", "tokens.json", "1", "257"],
    "tokenizer inspect": ["inspect", "tokens.json"],
    "tokenizer convert": ["convert", "tokens.json", "--out", "made"],
    "train_gpt": ["train_gpt", "--data", "text.txt", "--steps", "1"],
    "import": ["import", "run", "--out", "made"],
    "trace": ["trace", "--page", "gpt", "--out", "made"],
    "diff": ["diff", "run", "text.txt"],
    "serve": ["serve", "run", "--port", "0"],
}


def attack(seed: int, folder: Path) -> None:
    rng = Random(seed)
    prepare(folder)
    command_line = rng.choice(COMMANDS)
    program = main
    argv = [*command_line, *_arguments(rng, command_line)]
    if command_line == ("train_gpt",):
        argv, program = argv[1:], _train_gpt
    elif rng.random() < 0.03:
        argv = [hostile(rng), *argv]
    stdin = hostile(rng).encode(errors="surrogatepass") * rng.choice((1, 30))
    with contextlib.chdir(folder), nothing_lasts():
        command(program, argv, stdin)


def _train_gpt(argv: list[str]) -> int:
    return as_process(train_gpt_program.main, argv, "train_gpt")


def _arguments(rng: Random, command_line: tuple[str, ...]) -> list[str]:
    arguments = GOOD.get(" ".join(command_line), [""])[1:]
    names = list(settings(OPTIONS[command_line]))
    for _ in range(rng.choice((0, 1, 1, 1, 2, 3))):
        name = rng.choice(names)
        flag = f"--{rng.choice((name, name.replace('_', '-'), name.replace('_', '-')))}"
        value = rng.choice(SAFE) if name in WRITING else _value(rng)
        match rng.randrange(8):
            case 0:
                arguments.append(flag)
            case 1 | 2:
                arguments.append(f"{flag}={value}")
            case 3:
                at = rng.randrange(len(arguments) + 1)
                arguments[at:at] = [flag, value]
            case 4 if name not in WRITING and flag not in ("--data", "--resume"):
                arguments += [damaged(rng, flag), value]
            case 5:
                arguments += [flag, value, flag, value]
            case _:
                arguments += [flag, value]
    if arguments and rng.random() < 0.2 and not set(arguments) & {f"--{name}" for name in WRITING}:
        arguments[rng.randrange(len(arguments))] = _value(rng)
    if rng.random() < 0.05:
        arguments.append(rng.choice(("--help", "-h", "--", "--json", "--debug")))
    if rng.random() < 0.03:
        arguments += [hostile(rng)] * rng.choice((30, 3000))
    return arguments


def _value(rng: Random) -> str:
    """A value; none names a text to download, or a path above the folder that is written to."""
    return rng.choice(
        (
            rng.choice(NUMBERS),
            hostile(rng),
            rng.choice(("run", "text.txt", "sheet.md", "fifo", "missing", "/dev/null")),
        )
    )


@contextlib.contextmanager
def nothing_lasts() -> Any:
    """Replace what trains, generates or measures; a defect before it is still found."""

    def end(*arguments: object, **settings: object) -> Any:
        raise ByhandError("an attack ends here.")

    with contextlib.ExitStack() as replaced:
        for module, name in (
            (run_text, "open_text"), (train_command, "train_run"), (eval_command, "open_text"),
            (tokenizer, "open_text"), (plan, "_listed"), (plan, "show_stored"),
            (train_command, "show_run"), (sample, "Engine"), (chat, "Engine"), (serve, "Engine"),
            (serve, "_listening"),
            (bench.training, "measure"), (bench.generating, "measure"),
            (train_gpt_program, "start"), (train_gpt_program, "train"),
        ):  # fmt: skip
            replaced.enter_context(mock.patch.object(module, name, end))
        replaced.enter_context(mock.patch.object(train_gpt_program, "next_logits", return_value=iter(())))
        yield


def prepare(folder: Path) -> None:
    """Write what command lines name, if it is not there: a run, a text, a sheet, a FIFO."""
    if (folder / "sheet.md").exists():
        return
    config = TrainConfig(model=ModelConfig(seq_len=8, d_model=4), steps=10)
    write_run(folder / "run", config, {"path": "text.txt", "bytes": 10, "sha256": "0" * 64})
    (folder / "run" / "metrics.jsonl").write_text('{"step": 1, "train/loss": 5.5, "val/loss": 5.0}\n')
    for name in ("text.txt", "file.txt"):
        (folder / name).write_bytes(b"the quick brown fox jumps over the lazy dog\n" * 40)
    if hasattr(os, "mkfifo"):  # not on Windows
        os.mkfifo(folder / "fifo")
    forms.write(training.train([b"the fox the dog"], 260, "gpt4", (), 15), folder / "tokens.json")
    (folder / "sheet.md").write_text("byhand worksheet: topic=adamw seed=1\n1.1 = 3\n")
