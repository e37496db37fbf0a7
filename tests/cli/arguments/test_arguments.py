"""Arguments of every kind, through `parse`: one short line, soon, whatever they are."""

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import pytest

from byhand.cli.arguments.parsing import parse, read
from byhand.cli.arguments.settings import Positional, settings
from byhand.cli.learn import where
from byhand.cli.main import main
from byhand.cli.measure import bench
from byhand.cli.runs import eval as eval_command
from byhand.cli.runs import sample, train
from byhand.cli.seed.train_gpt_flags import Flags
from byhand.errors import ByhandError
from byhand.runtimes.registry import runtimes
from hostile.outcome import soon
from needs import needs_matplotlib


@dataclass(frozen=True)
class Options:
    """Some of each kind."""

    steps: int = 1
    """A number."""
    d_model: int | None = None
    """A number or none."""
    lr: float = 1.0
    """A number with a point."""
    lang: Literal["en", "zh"] = "en"
    """A choice."""
    out: Path | None = None
    """A path."""
    causal: bool = True
    """A pair."""


@dataclass(frozen=True)
class Named(Options):
    """The same behind names."""

    names: Positional[tuple[str, ...]] = ()
    """Positional."""


def refused(*arguments):
    with soon(arguments), pytest.raises(ByhandError) as error:
        parse(Options, list(arguments), "byhand x")
    said = str(error.value)
    assert "\n" not in said
    assert "\x1b" not in said
    assert "----" not in said
    return said


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--steps", "two"], "--steps two is not an integer."),
        (["--steps", ""], "--steps without a value is not an integer."),
        (["--steps="], "--steps without a value is not an integer."),
        (["--steps", "1.5"], "--steps 1.5 is not an integer."),
        (["--steps", "nan"], "--steps nan is not an integer."),
        (["--steps", "9" * 5000], "--steps 999999999…999999999 has 5,000 digits. Use a smaller number."),
        (["--d-model", "9" * 5000], "--d-model 999999999…999999999 has 5,000 digits. Use a smaller number."),
        (["--d_model", "x"], "--d-model x is not an integer."),
        (["--n-embd", "x"], "--d-model x is not an integer."),
        (["--steps", "x" * 100_000], "is not an integer."),
        (["--steps", "\x1b[31m\n"], r"--steps \x1b[31m\n is not an integer."),
        (["--steps", "1", "--steps", "x"], "--steps x is not an integer."),
        (["--steps", "x", "--lr", "y"], "is not a"),
        (["--lr", "x"], "--lr x is not a number."),
        (["--lr", "1,5"], "--lr 1,5 is not a number."),
        (["--lang", "fr"], "--lang is 'fr', but must be one of en, zh."),
        (["--lang", "x" * 100_000], "--lang is 'xxx"),
        (["--out"], "--out needs a value"),
        (["--stepz", "1"], "there is no option '--stepz'. Perhaps you meant --steps."),
        (["--" + "x" * 100_000], "there is no option '--xxx"),
        (["-" + "x" * 100_000 + "=1"], "there is no option '-xxx"),
        (["\u2013\u2013steps", "3"], "begins with a typographic dash. Write --steps."),
        (["\u2014steps=3"], "begins with a typographic dash. Write --steps."),
        (["--st\u2013eps", "3"], "Perhaps you meant --steps."),
        (["--\udcff"], "there is no option"),
        (["--causal=maybe"], "--causal takes no value."),
        (["--no-causal=maybe"], "--no-causal takes no value."),
        (["x"] * 1001, "there are 1,001 arguments"),
        (["x" * 1000] * 900, "the arguments have 900,000 characters"),
        (["x" * 131_072], "unexpected argument 'xxx"),
    ],
    ids=lambda value: ascii(value)[:40],
)
def test_bad_arguments(arguments, words):
    assert words in refused(*arguments)


def test_good_arguments():
    found = parse(Named, ["a", "--n_embd=8", "--steps", "007", "--lr=-inf", "--no-causal"], "byhand x")
    assert (found.names, found.d_model, found.steps, found.causal) == (("a",), 8, 7, False)
    dashed = parse(Named, ["\u2014x", "--out=\u2013y"], "byhand x")
    assert (dashed.names, dashed.out) == (("\u2014x",), Path("\u2013y"))


def test_what_was_given_is_told_from_defaults():
    given = read(Named, ["a", "--n-embd=8", "--steps", "1", "--no_causal", "--", "--lr"], "byhand x")
    assert given.values == {"names": ("a", "--lr"), "d_model": 8, "steps": 1, "causal": False}
    assert given.over(Named(lr=3.0)) == Named(names=("a", "--lr"), d_model=8, causal=False, lr=3.0)


COMMANDS = [train.Options, sample.Options, eval_command.Options, where.Options, bench.TrainOptions, Flags]


@pytest.mark.parametrize("options", COMMANDS)
def test_help_shows_the_flags_that_are_read(options, capsys):
    with pytest.raises(SystemExit):
        parse(options, ["--help"], "byhand x")
    shown = set(re.findall(r"^\W*?(--[a-z][\w-]*)", capsys.readouterr().out, re.MULTILINE))
    assert shown == {s.flag for s in settings(options).values() if not s.positional}


@pytest.mark.parametrize(
    "arguments",
    [["train"], ["sample", "run"], ["eval", "run", "--data", "missing"], ["bench", "train"]],
    ids=lambda arguments: arguments[0],
)
def test_runtimes_are_those_that_are_registered(arguments, capsys, refusal):
    names = ["auto", *(runtime.name for runtime in runtimes())]
    assert main([*arguments, "--help"]) == 0
    assert f"--runtime {{{','.join(names)}}}" in capsys.readouterr().out
    said = refusal(*arguments, "--runtime", "abacus")
    assert said.startswith(f"error: --runtime is 'abacus', but must be one of {', '.join(names)}.")


FLOATS = ["lr", "min-lr", "beta1", "beta2", "eps", "weight-decay", "grad-clip", "val-fraction", "minutes"]


@pytest.mark.parametrize("flag", FLOATS)
@pytest.mark.parametrize("value", ["nan", "inf", "-inf", "1e400", "-1e400"])
def test_training_takes_no_number_that_is_none(flag, value, refusal):
    said = refusal("train", "--data", "missing", f"--{flag}={value}")
    assert "missing" not in said
    assert "but must" in said


@pytest.mark.parametrize("flag", ["steps", "threads", "n-layers", "seq-len", "batch-size", "seed", "keep"])
@pytest.mark.parametrize("digits", [400, 5000])
def test_training_takes_no_endless_integers(flag, digits, refusal):
    refusal("train", "--data", "missing", f"--{flag}", "9" * digits)


@needs_matplotlib
@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["bench", "train", "--shape", "1,2²,3,1,1,1"], "shape '1,2²,3,1,1,1' is not known"),
        (["bench", "train", "--shape", "1," * 50_000], "is not known"),
        (["bench", "train", "--shape", "9" * 5000 + ",1,1,1,1,1"], "is not known"),
        (["bench", "train", "--shape", "0,1,1,1,1,1"], "is not known"),
        (["bench", "train", "--steps", "9" * 30], "must be from 1 to 1,000,000"),
        (["bench", "train", "--threads", "-1"], "threads is -1"),
        (["bench", "generate", "--tokens", "9" * 30], "must be from 1 to"),
        (["bench", "generate", "--threads", "-1"], "threads is -1"),
        (["bench", "x" * 100_000], "there is no byhand bench"),
        (["bench", "\x1b[31m"], r"there is no byhand bench '\x1b[31m'"),
        (["plan", "--threads", "-1"], "error: threads is -1, but must be at least 0. Use 0."),
        (["plan", "--threads", "1000"], "threads is 1000, but a measurement can have at most"),
        (["bench", "train", "--threads", "1000"], "threads is 1000, but a measurement can have at most"),
        (["plan", "--shape", "4,64,64,1,3,256"], "error: n_heads 3 does not divide d_model 64. Use n_heads 2 or 4."),
        (["plan", "--steps", "9" * 30], "must be from 0 to"),
        (["plan", "--of", "decode", "--streams", "9" * 30], "--streams from 1 to"),
        (["plan", "--plot", "no/such/x.png"], "there is no folder"),
        (["plan", "--plot", "a\0.png"], "neither .png nor .svg"),
        (["train", "--preset", "x" * 100_000], "there is no preset"),
        (["train", "--minutes", "1e30", "--data", "missing"], "a year has 527,040"),
    ],
    ids=lambda value: ascii(value)[:60],
)
def test_benches_and_plans_refuse_before_they_begin(arguments, words, refusal):
    with soon(arguments):
        assert words in refusal(*arguments)


@pytest.mark.parametrize(
    ("arguments", "because"),
    [
        (["worksheet", "--seed", "1"], "without a topic, as in --topic attention"),
        (["worksheet", "--out", "x"], "without a topic, as in --topic attention"),
        (["where", "--limit", "5"], "without a query"),
        (["work", "--quiz"], "without an example, such as gelu"),
        (["work", "--from", "1"], "without an example, such as gelu"),
        (["work", "gelu", "--all"], "without --quiz"),
        (["work", "gelu", "--quiz", "--resume", "--from", "1"], "with --resume, which continues the last quiz"),
        (["train", "--patience", "9", "--data", "missing"], "without --hosts"),
        (["plan", "--weights", "float32"], "with --of train"),
        (["plan", "--of", "decode", "--optimizer", "adamw"], "with --of decode"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_a_flag_that_changes_nothing_is_refused(arguments, because, refusal):
    """Also with the value that it has anyway."""
    assert f" changes nothing {because}. Leave it out." in refusal(*arguments)


def test_the_words_of_an_advice_are_no_flags(tmp_path, refusal):
    said = refusal("train", "--out", str(tmp_path / "run"), "--attention-window", "4", "--no-causal")
    assert said.strip().endswith("--attention-window is for --causal attention. Leave it out, or set --causal.")
