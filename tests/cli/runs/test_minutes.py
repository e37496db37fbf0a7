"""`byhand train --minutes`: what it says, what it keeps, and that it ends in time."""

import itertools
import json
import re
import time
from types import SimpleNamespace

import pytest

from byhand.budget import recipe
from byhand.budget.choice import FEWEST
from byhand.budget.pace import Pace
from byhand.cli.arguments.parsing import read
from byhand.cli.main import main
from byhand.cli.runs.minutes import Promise
from byhand.cli.runs.train import LEAST, Options, opened
from byhand.config import ModelConfig, OptimConfig, from_dict
from byhand.files.sealed import entries, manifest
from byhand.flops import step_flops
from byhand.runs.trainer import Trainer
from cli import inside
from cli.process import byhand, error_line, write_text
from needs import LOOPS

EXPECTED = re.compile(
    r"measured: (?P<rate>[\d,]+) tokens/s with (?P<layers>\d+) layers?, \d+ heads?, width (?P<width>\d+), "
    r"context (?P<context>\d+), batch (?P<batch>\d+); [\d.]+ s gone\n"
    r"chosen: (?P<choices>\w+ positions, \w+ norm, \w+, \w+); (?P<steps>[\d,]+) steps?, "
    r"(?P<passes>[\d.e+]+) pass(es)? over the training part of the text(?P<why>.*)\n"
    r"expected: done at \d\d:\d\d:\d\d, .+ after the start, with validation loss (?P<loss>[\d.]+) "
    r"\([\d.]+ to [\d.]+\)"
)
OUTCOME = re.compile(
    r"took (?P<took>[\d.]+) s of (?P<of>[\d.]+) \([+-][\d.]+%\); "
    r"((?P<steps>[\d,]+) steps? instead of (?P<planned>[\d,]+) to keep the time; )?"
    r"expected validation loss (?P<loss>[\d.]+), reached (?P<reached>[\d.]+) \((?P<off>[+-][\d.]+)\)"
)


SPEED = 3e8  # FLOP/s of the machine that tests pretend to have
RUNTIME = ("--runtime", "loops", "--threads", "1") if LOOPS else ("--runtime", "numpy")  # thousands of small steps


class Machine:
    """A machine whose clock counts operations, so that plans do not depend on the testing machine."""

    def __init__(self, monkeypatch, capsys):
        self.now, self._capsys = 1000.0, capsys
        self.load = lambda seconds: 1.0  # how many times as long everything takes, by the time since the beginning
        clock = SimpleNamespace(monotonic=self.read, perf_counter=self.read, time=self.read)
        clock.localtime, clock.strftime = time.gmtime, time.strftime
        for module in ("budget.pace", "budget.probe", "cli.terminal.clock", "cli.runs.minutes", "cli.runs.training"):
            monkeypatch.setattr(f"byhand.{module}.time", clock)
        self._slow(monkeypatch, "update", lambda trainer: trainer.config.batch_size * trainer.config.grad_accum)
        self._slow(monkeypatch, "evaluate", lambda trainer: len(trainer.val_windows[0]) / 3)

    def read(self):
        return self.now

    def _slow(self, monkeypatch, name, rows):
        method = getattr(Trainer, name)

        def counted(trainer):
            alone = 3e-4 + step_flops(trainer.config.model, rows(trainer)) / SPEED
            self.now += alone * self.load(self.now - 1000.0)
            return method(trainer)

        monkeypatch.setattr(Trainer, name, counted)

    def train(self, *arguments):
        """Run the command in this process; return its standard output and standard error."""
        code = main(["train", *map(str, arguments), *(() if "--resume" in arguments else RUNTIME)])
        out, err = self._capsys.readouterr()
        assert code == 0, err
        return out, err


@pytest.fixture
def machine(monkeypatch, capsys, tmp_path):
    monkeypatch.chdir(tmp_path)
    return Machine(monkeypatch, capsys)


def said(pattern, output):
    found = pattern.search(output)
    assert found, output
    return found


def settings(run):
    return json.loads(inside.byhand("info", run, "--json").stdout)


@pytest.mark.parametrize(
    ("expected", "reached"), [(1.5351, 1.5049), (1.5049, 1.5351), (1.504, 1.496), (1.496, 1.496)]
)
def test_the_difference_printed_is_that_of_the_losses_printed(expected, reached):
    found = said(OUTCOME, Promise(60, expected, 100, SimpleNamespace()).outcome(reached, 100))
    assert float(found["off"]) == pytest.approx(float(found["reached"]) - float(found["loss"]), abs=1e-9)


@pytest.mark.parametrize("minutes", [0.25, pytest.param(0.5, marks=pytest.mark.slow)])
def test_it_ends_when_it_said(tmp_path, machine, minutes):
    text = write_text(tmp_path / "text.txt", 400_000)
    begun = machine.now
    out, err = machine.train("--minutes", minutes, "--data", text, "--out", "run")
    took = machine.now - begun
    before, after = said(EXPECTED, err), said(OUTCOME, out)
    assert float(after["of"]) == 60 * minutes
    assert 0.85 * 60 * minutes < took <= 60 * minutes
    assert float(after["took"]) == pytest.approx(took, abs=0.06)
    assert before["loss"] == after["loss"]
    stored = settings(tmp_path / "run")
    planned, made = (int(steps.replace(",", "")) for steps in (before["steps"], after["steps"] or before["steps"]))
    assert stored["training"]["steps"] == made
    assert abs(made - planned) <= 1, "on a machine of one speed"
    assert stored["model"]["d_model"] == int(before["width"])
    rows = (tmp_path / "run" / "metrics.jsonl").read_text().splitlines()
    assert len(rows) == stored["training"]["steps"]
    assert f"{json.loads(rows[-1])['val/loss']:.2f}" == after["reached"]
    assert sum("val/loss" in row for row in rows) <= 10


SHORT_STEPS = ["--d-model", 8, "--n-heads", 1, "--n-layers", 1, "--seq-len", 8, "--batch-size", 32]
SHORT_STEPS += ["--eval-windows", 16, "--eval-interval", 100]  # some four hundred in 18 seconds
LOADS = {
    "slower from early on": lambda s: 1 if s < 2 else 3,
    "slower late": lambda s: 1 if s < 12 else 5,
    "faster from early on": lambda s: 3 if s < 7 else 1,
    "faster late": lambda s: 2 if s < 12 else 1,
    "by turns": lambda s: 1 if s % 2 < 1 else 4,
    "ever slower": lambda s: 1 + s / 4,
    "a short load": lambda s: 4 if 5 < s < 6 else 1,
}


QUICK = ("slower from early on", "by turns")


@pytest.mark.parametrize(
    "load", [pytest.param(load, marks=[] if load in QUICK else pytest.mark.slow) for load in LOADS]
)
def test_it_ends_in_time_beside_other_programs_and_cools_down(tmp_path, machine, load):
    """Within 5 % of the time, never after it; the last steps have the schedule's lowest rates."""
    text, begun, machine.load = write_text(tmp_path / "text.txt", 400_000), machine.now, LOADS[load]
    out, err = machine.train("--minutes", 0.3, *SHORT_STEPS, "--data", text, "--out", "run")
    assert 0.95 <= (machine.now - begun) / (60 * 0.3) <= 1
    before, after, stored = said(EXPECTED, err), said(OUTCOME, out), settings(tmp_path / "run")
    steps = stored["training"]["steps"]
    rows = [json.loads(row) for row in (tmp_path / "run" / "metrics.jsonl").read_text().splitlines()]
    assert len(rows) == steps
    assert (after["planned"], after["steps"]) == (before["steps"], f"{steps:,}")
    assert stored["planned"]
    assert next(iter(stored["planned"].values())) == int(before["steps"].replace(",", ""))
    assert rows[-1]["lr"] == stored["optim"]["min_lr"]
    assert rows[-1]["val/loss"] < rows[0]["train/loss"]


def test_what_changed_the_steps_is_kept_when_the_run_goes_on(tmp_path, machine):
    machine.load = LOADS["slower from early on"]
    text = write_text(tmp_path / "text.txt", 400_000)
    machine.train("--minutes", 0.3, *SHORT_STEPS, "--data", text, "--out", "run")
    before = settings(tmp_path / "run")
    steps = before["training"]["steps"]
    machine.train("--resume", "run", "--steps", steps + 2)
    first, *_ = before["planned"].items()
    after = [*settings(tmp_path / "run")["planned"].items()]
    assert (after[0], after[-1]) == (first, (f"until step {steps}", steps))
    assert len(after) <= 10


def once(after, times):
    """A load of one step, or of one evaluation, alone."""
    loads = iter([times])
    return lambda s: next(loads, 1) if s > after else 1


@pytest.mark.parametrize("at", [pytest.param(3, marks=pytest.mark.slow), 9, pytest.param(16, marks=pytest.mark.slow)])
def test_an_interruption_is_no_pace(tmp_path, machine, at):
    """Like a Ctrl-Z, or an evaluation slowed by another program: the rest of the run keeps its pace."""
    text, begun, machine.load = (
        write_text(tmp_path / "text.txt", 400_000),
        machine.now,
        once(at, 30 if at > 9 else 250),
    )
    machine.train("--minutes", 0.3, *SHORT_STEPS, "--data", text, "--out", "run")
    assert 0.95 <= (machine.now - begun) / (60 * 0.3) <= 1
    rates = [json.loads(row)["lr"] for row in (tmp_path / "run" / "metrics.jsonl").read_text().splitlines()]
    assert rates[-1] == 0
    assert sum(b > a for a, b in itertools.pairwise(rates[20:])) <= 3, "the rate falls, and stays there"


def test_the_run_is_an_ordinary_one_that_its_settings_give_again(tmp_path, text, machine, monkeypatch):
    monkeypatch.setattr(Pace, "steps", lambda self, step, steps: steps)  # as planned: no other schedule on the way
    machine.train("--minutes", 0.3, "--data", text, "--out", "planned")
    config = json.loads(next((tmp_path / "planned").glob("step-*/config.json")).read_text())
    toml = [f"[{part}]\n" + _toml(config.pop(part)) for part in ("model", "data", "optim")]
    (tmp_path / "same.toml").write_text(_toml(config) + "".join(toml))
    machine.train("--config", "same.toml", "--out", "again")
    weights = [next((tmp_path / run).glob("step-*/model.safetensors")).read_bytes() for run in ("planned", "again")]
    assert weights[0] == weights[1]


def _toml(values):
    return "".join(f"{name} = {json.dumps(value)}\n" for name, value in values.items() if value is not None)


def test_what_flags_and_files_give_is_kept(tmp_path, text, machine):
    (tmp_path / "mine.toml").write_text('lr = 0.002\n[model]\nactivation = "relu"\nn-layers = 2\n')
    flags = ["--minutes", 0.3, "--config", "mine.toml", "--n-embd", 24, "--block-size=20", "--batch_size", 3]
    machine.train(*flags, "--no-lm-head-bias", "--eval-windows", 10, "--data", text, "--out", "run")
    stored = settings(tmp_path / "run")
    model = stored["model"]
    assert (model["d_model"], model["seq_len"], model["n_layers"]) == (24, 20, 2)
    assert (model["activation"], model["lm_head_bias"]) == ("relu", False)
    assert (stored["training"]["batch_size"], stored["training"]["eval_windows"]) == (3, 10)
    assert stored["optim"]["lr"] == 0.002
    assert stored["optim"]["warmup_steps"] == max(1, round(0.02 * stored["training"]["steps"]))


@pytest.mark.parametrize(
    "flags",
    [
        {"muon_lr": 0.03, "cooldown": 0.3, "rope_base": 500.0},  # of choices that the recipe makes
        {"optimizer": "adamw", "schedule": "cosine", "positions": "learned", "norm": "layer", "activation": "gelu"},
    ],
    ids=" ".join,
)
def test_the_rest_of_the_recipe_stays_beside_what_is_given(tmp_path, text, machine, flags):
    given = [word for name, value in flags.items() for word in (f"--{name.replace('_', '-')}", value)]
    _, err = machine.train("--minutes", 0.3, *given, "--data", text, "--out", "run")
    stored = settings(tmp_path / "run")
    made = vars(from_dict(ModelConfig, stored["model"])) | vars(from_dict(OptimConfig, stored["optim"]))
    usual = {**vars(recipe.MODEL), **vars(recipe.OPTIM), "muon_lr": recipe.LR_OF_MATRICES} | flags
    for name in ("positions", "norm", "activation", "qk_norm", "optimizer", "schedule", "cooldown", "rope_base"):
        assert made[name] == usual[name]
    assert made["muon_lr"] == usual["muon_lr"] or made["optimizer"] != "muon"
    choices = "{positions} positions, {norm} norm, {activation}, {optimizer}".format(**usual)
    assert said(EXPECTED, err)["choices"] == choices


def test_a_preset_gives_all_but_the_length(tmp_path, text, machine):
    machine.train("--minutes", 0.3, "--preset", "seed", "--data", text, "--out", "run")
    stored = settings(tmp_path / "run")
    assert stored["optim"]["schedule"] == "constant"
    assert (stored["optim"]["lr"], stored["optim"]["warmup_steps"]) == (3e-4, 0)
    assert (stored["model"]["d_model"], stored["model"]["n_layers"], stored["training"]["batch_size"]) == (64, 1, 4)
    assert stored["training"]["steps"] != 200


def test_a_short_text_ends_the_run_before_the_time_does(tmp_path, machine):
    write_text(tmp_path / "short.txt", 600)
    out, err = machine.train("--minutes", 5, "--data", "short.txt", "--out", "run")
    assert "more would only memorise so short a text" in said(EXPECTED, err)["why"]
    assert float(said(OUTCOME, out)["of"]) < 60
    assert settings(tmp_path / "run")["model"]["seq_len"] == 32  # two windows of 64 do not fit 60 bytes


def test_it_can_be_stopped_and_resumed(tmp_path, text, machine):
    machine.train("--minutes", 0.3, "--data", text, "--save-interval", 2, "--out", "run")
    newest = max((tmp_path / "run").glob("step-*"))
    (newest / "model.safetensors").unlink()
    out, _ = machine.train("--resume", "run")
    assert (newest / "model.safetensors").exists()
    assert "took" not in out


def test_a_text_alone_trains_for_one_minute_on_what_it_has(tmp_path, machine):
    for size in (40, 600):
        write_text(tmp_path / f"{size}.txt", size)
        out, err = machine.train("--data", f"{size}.txt", "--seed", 2, "--out", f"of-{size}")
        assert "training for one minute, the default" in err.splitlines()[0]
        stored = settings(tmp_path / f"of-{size}")
        assert stored["model"]["norm"] == "rms", "the recipe"
        assert (stored["training"]["steps"], stored["training"]["seed"]) == (FEWEST, 2)
    assert float(said(OUTCOME, out)["reached"]) < 4.5, "it learnt something"


def test_what_takes_long_before_training_makes_the_default_minute_longer(tmp_path, machine, monkeypatch):
    def compiles(*_):
        machine.now += 80

    monkeypatch.setattr("byhand.cli.runs.minutes.warm_up", compiles)
    begun, text = machine.now, write_text(tmp_path / "text.txt", 400_000)
    given = ["--data", text, "--out", "run", "--eval-windows", 16]
    machine.train(*given)
    assert 80 + 25 < machine.now - begun <= 80 + LEAST
    assert main(["train", *map(str, given[:-3]), "asked", "--minutes", "1"]) == 2


@pytest.mark.parametrize(
    "flag", [["--steps", 3], ["--batch-size", 2], ["--n-layers", 1], ["--lr", 0.01], ["--preset", "nano"]]
)
def test_any_setting_of_the_recipe_trains_as_before(tmp_path, monkeypatch, flag):
    begun = []
    monkeypatch.setattr("byhand.cli.runs.train.begin", lambda config, *_: begun.append(config) or 1 / 0)
    with pytest.raises(ZeroDivisionError), opened(read(Options, [*map(str, flag), "--out", "run"], "byhand train")):
        pass
    assert begun[0].model.norm == "layer"
    assert begun[0].optim.optimizer == "adamw"


def test_minutes_extend_a_run(tmp_path, machine):
    text = write_text(tmp_path / "text.txt", 400_000)
    machine.train("--steps", 50, *SHORT_STEPS, "--warmup-steps", 5, "--data", text, "--out", "run")
    begun = machine.now
    out, err = machine.train("--resume", "run", "--minutes", 0.3)
    assert 0.9 * 18 < machine.now - begun <= 18
    steps = settings(tmp_path / "run")["training"]["steps"]
    assert re.search(r"chosen: [\d,]+ more steps at the [\d,]+ tokens/s of its last ones", err)
    assert "learning rate rises from" in err
    assert re.search(r"; validation loss was [\d.]+, reached [\d.]+ \(-[\d.]+\)", out)
    rows = [json.loads(row) for row in (tmp_path / "run" / "metrics.jsonl").read_text().splitlines()]
    assert len(rows) == steps > 100, "though its metrics are those of another machine"


def test_as_a_process_on_this_machine(tmp_path):
    """Whatever its speed: the text is over before an hour is."""
    write_text(tmp_path / "short.txt", 600)
    done = byhand("train", "--minutes", 60, "--data", "short.txt", "--out", "run", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    before, after = said(EXPECTED, done.stderr.decode()), said(OUTCOME, done.stdout.decode())
    assert before["loss"] == after["loss"]
    assert settings(tmp_path / "run")["training"]["steps"] == int(before["steps"].replace(",", ""))


BAD = [
    (["--minutes", "0"], "^error: --minutes is 0, but must be a positive number. Use --minutes 5.$"),
    (["--minutes", "-1"], "--minutes is -1, but"),
    (["--minutes", "nan"], "--minutes is nan, but"),
    (["--minutes", "inf"], "--minutes is inf, but"),
    (["--minutes", "soon"], "--minutes soon is not a number"),
    (["--minutes", "1", "--steps", "10"], "--minutes chooses the number of steps"),
    (["--minutes", "1", "--max-iters=10"], "--minutes chooses the number of steps"),
    (["--minutes", "1", "--config", "steps.toml"], "--minutes chooses the number of steps"),
    (["--minutes", "-1", "--resume", "run"], "--minutes is -1, but"),
    (["--minutes", "1", "--steps", "9", "--resume", "run"], "--minutes chooses the number of steps"),
    (["--minutes", "1", "--seq-len", "5000"], "needs at least 5,001"),
    (["--minutes", "1", "--min-lr", "1"], "--min-lr 1.0 must lie between 0 and lr"),
    (["--minutes", "0.0001"], "--minutes 0.0001 is over before the first step"),
    (["--minutes", "1", "--out", "run"], "run holds a run already"),
    (["--minutes", "1", "--data", "one.txt"], "holds 0 bytes"),
]


@pytest.mark.parametrize(("arguments", "expected"), BAD, ids=[" ".join(a) for a, _ in BAD])
def test_bad_input_is_one_line_and_leaves_nothing(tmp_path, text, arguments, expected):
    (tmp_path / "steps.toml").write_text("steps = 4\n")
    (tmp_path / "one.txt").write_text("x")
    (tmp_path / "run" / "step-00000001").mkdir(parents=True)
    (tmp_path / "run" / "step-00000001" / "manifest.json").write_bytes(
        manifest(entries({"model.safetensors": [b""]}))
    )
    data = [] if "--data" in arguments else ["--data", text]
    line = error_line(inside.byhand("train", *data, *arguments, cwd=tmp_path))
    assert re.search(expected, line), line
    assert not (tmp_path / "runs").exists()
