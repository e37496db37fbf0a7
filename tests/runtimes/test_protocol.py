"""The seam: a runtime that is only registered can do all that the others do, and a fallback is seen, never raised."""

import json
import subprocess
import sys
import threading
from collections import Counter
from dataclasses import replace
from typing import ClassVar

import numpy as np
import pytest

from byhand import optim
from byhand.config import ModelConfig, TrainConfig
from byhand.corpus.dataset import ByteDataset
from byhand.errors import ConfigError
from byhand.evaluate import evaluate
from byhand.generation import Sampling, generate
from byhand.model import TinyGPT
from byhand.runs import checkpoint
from byhand.runs.run import training
from byhand.runs.trainer import Trainer
from byhand.runtimes import registry
from byhand.runtimes.numpy.decoder import NumpyDecoder
from byhand.runtimes.numpy.runtime import NumpyRuntime
from byhand.runtimes.numpy.session import NumpySession
from byhand.runtimes.protocol import Request, to_train
from byhand.runtimes.registry import begin, choose, register
from byhand.runtimes.sessions import held
from cli.inside import byhand
from cli.process import TINY, error_line, write_text
from needs import needs_loops
from runtimes.registered import NAMES, OTHERS, REFERENCE, able

TEXT = np.frombuffer(b"".join(b"line %d of a text; " % (i * i) for i in range(200)), dtype=np.uint8)
CONFIG = TrainConfig(
    model=ModelConfig(seq_len=8, d_model=8, n_layers=1, n_heads=2), steps=6, batch_size=3, eval_windows=5
)


PAIRS = [(REFERENCE, name) for name in OTHERS]


def require_able(*names):
    """Skip the test where one of these runtimes cannot train."""
    for name in names:
        able(Request("train", CONFIG.model, name))


class LateOutcome:
    """Loss and norm as functions, as a device would have them; says how often they were fetched."""

    fetched: ClassVar = Counter()

    def __init__(self, loss, norm):
        self._made = {"loss": loss, "norm": norm}

    def __getattr__(self, name):
        self.fetched[name] += 1
        return float(self._made[name]())


class ToySession(NumpySession):
    """Gradients by NumPy; the update is the pure function, and what was computed is fetched late."""

    description = "with toys"

    def step(self, batches, max_norm):
        parameters = self.model.parameters()
        self.model.zero_grad()
        losses = [self.model.loss(*batch) for batch in batches]
        for loss in losses:
            loss.backward(1 / len(losses))
        o = self.optimizer
        rules = {name: o.rule(name, p) for name, p in parameters.items()}
        gradients = {name: p.grad for name, p in parameters.items()}
        before, t, lr = held(self.model, o), np.asarray(o.t + 1), np.asarray(o.lr)
        made, norm = optim.updated(before, gradients, t, lr, rules, max_norm)
        for name, p in parameters.items():
            p.data = made.parameters[name]
        o.restore(made.moments, made.averages)
        o.t += 1
        return LateOutcome(lambda: np.mean([loss.item() for loss in losses]), lambda: norm)

    def provenance(self):
        return {"runtime": "toy"}


class ToyDecoder(NumpyDecoder):
    """The likeliest token, whatever was asked for."""

    def admit(self, slot, stream, kept=0):
        stream.sampling = Sampling(temperature=0)
        super().admit(slot, stream, kept)


class Toy(NumpyRuntime):
    """A third runtime; `fails` says at what it fails, and how."""

    name = "toy"

    def __init__(self, **fails):
        self.fails = fails

    def _may_fail(self, at):
        if at in self.fails:
            raise self.fails[at]

    def obstacle(self, request):
        if request.use in self.fails.get("obstacle", ()):
            return "the toy runtime is for other games. Use --runtime numpy."
        return super().obstacle(request)

    def session(self, model, optimizer, request):
        self._may_fail("session")
        session = ToySession(model, optimizer)
        session.prepare = lambda steps, losses: self._may_fail("prepare")
        return session

    def decoder(self, model, request):
        self._may_fail("decoder")
        return ToyDecoder(model, request)

    def facts(self):
        return {"toys": "three"}


@pytest.fixture
def registered(monkeypatch):
    """Register a toy for as long as a test runs."""
    monkeypatch.setattr(registry, "_runtimes", dict(registry._runtimes))

    def add(**fails):
        register(Toy(**fails))

    return add


@pytest.fixture
def folder(tmp_path):
    write_text(tmp_path / "text.txt")
    return tmp_path


def trainer(runtime="auto", start=None, **settings):
    config = replace(CONFIG if start is None else start.config, runtime=runtime, **settings)
    train, val = ByteDataset(TEXT).split(0.1, config.model.seq_len)
    return Trainer(config, train, val, start)


@pytest.mark.parametrize("named", [True, False])
def test_a_registered_runtime_trains_evaluates_and_generates(registered, folder, named):
    registered()
    flag = ["--runtime", "toy"] if named else []
    done = byhand("train", *TINY, *flag, "--data", "text.txt", "--out", "run", cwd=folder)
    assert done.returncode == 0, done.stderr
    assert b"runtime toy: with toys\n" in done.stderr
    loaded = checkpoint.load(folder / "run")
    assert (loaded.config.runtime, loaded.state["used"]) == ("toy" if named else "auto", {"runtime": "toy"})
    figures = json.loads(byhand("eval", "run", *flag, "--data", "text.txt", "--json", cwd=folder).stdout)
    assert (figures["runtime"], figures["why"]) == ("toy", "")
    text = byhand("sample", "run", *flag, "--max-new-tokens", 9, cwd=folder)
    greedy = ["sample", "run", "--runtime", "numpy", "--temperature", 0, "--max-new-tokens", 9]
    assert text.stdout == byhand(*greedy, cwd=folder).stdout
    assert text.stderr == b""
    bench = ["bench", "train", *flag, "--shape", "1,4,8,1,1,5", "--steps", 2, "--json"]
    assert json.loads(byhand(*bench, cwd=folder).stdout)["runtime"] == "toy"
    facts = json.loads(byhand("doctor", "--json", cwd=folder).stdout)
    assert (facts["runtime"].partition(" ")[0], facts["toys"]) == ("toy", "three")


def test_the_toy_trains_as_the_tape_does(registered):
    """It makes the update by the pure function; with one micro-batch the gradients are NumPy's own."""
    registered()
    LateOutcome.fetched.clear()
    ours, theirs = trainer("toy"), trainer("numpy")
    for _ in range(3):
        assert ours.update().grad_norm == theirs.update().grad_norm
    assert LateOutcome.fetched == {"loss": 3, "norm": 3}
    for part, expected in zip(*(t.session.state().dictionaries() for t in (ours, theirs)), strict=True):
        assert {n: a.tobytes() for n, a in part.items()} == {n: a.tobytes() for n, a in expected.items()}


def test_without_the_registration_the_name_is_unknown(folder):
    done = byhand("train", *TINY, "--runtime", "toy", "--data", "text.txt", "--out", "run", cwd=folder)
    assert done.returncode == 2
    said = f"error: --runtime is 'toy', but must be one of {', '.join(('auto', *NAMES))}."
    assert error_line(done).startswith(said)
    with pytest.raises(ConfigError, match=rf"^runtime is 'toy'. Use one of auto, {', '.join(NAMES)}\.$"):
        trainer("toy")
    assert not (folder / "run").exists()


def test_registering_imports_no_compiler():
    code = "import sys, byhand.runtimes.registry as r; r.runtimes(); print([m for m in sys.modules if m in "
    code += "('numba', 'llvmlite', 'scipy', 'byhand.runtimes.loops.run.training')])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, check=True)
    assert done.stdout.strip() == b"[]"


def test_a_runtime_has_no_plan_and_one_process_unless_it_says_otherwise():
    runtime, request = NumpyRuntime(), Request("train", ModelConfig())
    with pytest.raises(ConfigError, match="no plan to list"):
        runtime.listing("train", None, None, request, (1, 1), 0)
    with pytest.raises(ConfigError, match="for the xla runtime"):
        runtime.join("10.0.0.1:9876,2,0", "run", 1.0, print)
    assert runtime.suits(request)
    assert runtime.facts() == {}


@pytest.mark.parametrize("use", ["train", "evaluate", "generate"])
def test_an_obstacle_is_the_reason_under_auto_and_an_error_where_it_was_named(registered, use):
    registered(obstacle=(use,))
    request = Request(use, ModelConfig())
    choice = choose(request)
    assert choice.runtime.name in NAMES
    assert choice.why == "the toy runtime is for other games."
    with pytest.raises(ConfigError, match="is for other games"):
        choose(replace(request, runtime="toy"))


REFUSED = ConfigError("the system started only 1 of 9 threads. Use --threads 1.")
BROKEN = RuntimeError("LLVM: no room\nfor code")
FAILURES = [(REFUSED, str(REFUSED)), (BROKEN, "the toy runtime failed (RuntimeError: LLVM: no room).")]
FAILURES += [(ImportError("no JIT"), "failed (ImportError: no JIT).")]


@pytest.mark.parametrize(("error", "line"), FAILURES, ids=["refused", "broken", "not importable"])
@pytest.mark.parametrize("at", ["session", "prepare"])
def test_a_run_whose_runtime_fails_goes_on_with_the_next_and_says_why(registered, folder, at, error, line):
    registered(**{at: error})
    train = ["train", *TINY, "--data", "text.txt", "--out"]
    done = byhand(*train, "run", cwd=folder)
    assert done.returncode == 0, done.stderr
    said = done.stderr.decode().splitlines()
    (why,) = [words for words in said if words.startswith(tuple(f"runtime {name}: " for name in NAMES))]
    assert line in why
    assert checkpoint.load(folder / "run").state["used"]["runtime"] in why
    named = byhand(*train, "other", "--runtime", "toy", cwd=folder)
    assert named.returncode == 2
    assert line in error_line(named)
    figures = byhand("eval", "run", "--data", "text.txt", "--json", cwd=folder)
    assert line in json.loads(figures.stdout)["why"]
    assert line in figures.stderr.decode()
    assert line in error_line(byhand("eval", "run", "--runtime", "toy", "--data", "text.txt", cwd=folder))


@pytest.mark.parametrize(("error", "line"), FAILURES, ids=["refused", "broken", "not importable"])
def test_a_text_whose_runtime_fails_is_generated_by_the_next(registered, error, line):
    registered(decoder=error)
    model = TinyGPT(CONFIG.model)
    text = generate(model, [1], 5, Sampling(temperature=0))
    assert line in text.why
    assert list(text) == list(generate(model, [1], 5, Sampling(temperature=0), runtime="numpy"))
    with pytest.raises(ConfigError) as raised:
        generate(model, [1], 5, runtime="toy")
    assert line in str(raised.value)


def test_an_interrupt_while_a_runtime_is_imported_is_no_failure_of_it(registered):
    late = ImportError("half imported")
    late.__cause__ = KeyboardInterrupt()
    for error in (late, KeyboardInterrupt()):
        registered(session=error)
        with pytest.raises(type(error)):
            trainer()


def test_if_all_fail_the_last_error_is_raised_as_it_is(monkeypatch):
    def fails(runtime):
        raise ZeroDivisionError(runtime.name)

    for name in ("auto", "numpy"):
        with pytest.raises(ZeroDivisionError, match="numpy"):
            begin(Request("train", ModelConfig(), name), fails)


def test_nobody_computes_bfloat16_without_the_loops(monkeypatch):
    monkeypatch.setattr("byhand.runtimes.loops.missing", lambda: ["numba"])
    with pytest.raises(ConfigError, match="bfloat16 needs the loops runtime"):
        choose(to_train(replace(CONFIG, dtype="bfloat16")))


@needs_loops
def test_threads_that_the_system_refuses_are_a_reason_to_take_numpy(monkeypatch):
    def refuse(thread):
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(threading.Thread, "start", refuse)
    run = trainer(threads=3)
    assert run.choice.runtime.name == "numpy"
    assert run.choice.why == "the system started only 0 of 2 threads. End other programs or use 1."
    run.update()
    with pytest.raises(ConfigError, match="started only 0 of 2"):
        trainer("loops", threads=3)


@needs_loops
def test_a_kernel_that_cannot_be_compiled_is_a_reason_to_take_numpy(monkeypatch):
    """The loops' session has taken the arrays into its memory by then."""
    expected, run = trainer("numpy"), trainer(threads=2)
    assert run.used["runtime"] == "loops"
    begun = trainer("loops")

    def fails(tables):
        raise RuntimeError("cannot select: bf16")

    monkeypatch.setattr("byhand.runtimes.loops.run.training.ready_for", fails)
    for _ in range(2):
        assert run.update().loss == expected.update().loss
    assert run.used == {"runtime": "numpy"}
    assert run.choice.why == "the loops runtime failed (RuntimeError: cannot select: bf16)."
    for name, p in expected.model.parameters().items():
        np.testing.assert_array_equal(run.model.parameters()[name].data, p.data)
    with pytest.raises(ConfigError, match=r"failed \(RuntimeError: cannot select"):
        begun.prepare()
    text = ByteDataset(TEXT)
    monkeypatch.setattr("byhand.runtimes.loops.runtime.LEAST_OPERATIONS", 1.0)
    assert evaluate(run.model, text).why == run.choice.why
    assert evaluate(run.model, text).loss == evaluate(run.model, text, runtime="numpy").loss


@pytest.mark.parametrize(("first", "second"), PAIRS)
def test_a_run_goes_on_under_another_runtime_and_back(tmp_path, first, second):
    """Each part says the change, and stores what was asked and what was used; the weights end as one runtime's."""
    require_able(first, second)
    run, before = trainer(first), first
    for runtime in (second, first):
        run.update()
        run.update()
        run.save(tmp_path)
        loaded = checkpoint.load(tmp_path)
        assert (loaded.config.runtime, loaded.state["used"]["runtime"]) == (before, before)
        run = trainer(runtime, loaded)
        assert run.change.startswith(f"so far {before}")
        assert f"now {runtime}" in run.change
        before = runtime
    list(training(run, tmp_path))
    assert checkpoint.load(tmp_path).step == CONFIG.steps
    whole = trainer(first)
    list(training(whole, tmp_path / "whole"))
    for name, p in whole.model.parameters().items():
        np.testing.assert_allclose(run.model.parameters()[name].data, p.data, rtol=0, atol=1e-4, err_msg=name)


@pytest.mark.parametrize(("first", "second"), PAIRS)
def test_the_command_resumes_under_another_runtime(folder, first, second):
    require_able(first, second)
    train, val = ByteDataset(np.fromfile(folder / "text.txt", np.uint8)).split(0.1, CONFIG.model.seq_len)
    half = Trainer(replace(CONFIG, runtime=first), train, val)
    half.update()
    half.save(folder / "run")
    done = byhand("train", "--resume", "run", "--runtime", second, "--data", "text.txt", cwd=folder)
    assert done.returncode == 0, done.stderr
    assert f"runtime {second}: ".encode() in done.stderr
    assert f"so far {first}".encode() in done.stderr
    loaded = checkpoint.load(folder / "run")
    assert (loaded.step, loaded.config.runtime, loaded.state["used"]["runtime"]) == (6, second, second)


def test_the_command_goes_on_with_a_run_saved_as_loops_before_used_was_kept(folder, monkeypatch):
    """Where the loops cannot compute: its settings hold what was used in place of what was asked for."""
    train, val = ByteDataset(np.fromfile(folder / "text.txt", np.uint8)).split(0.1, CONFIG.model.seq_len)
    half = Trainer(replace(CONFIG, runtime="numpy"), train, val)
    half.update()
    kept = half.checkpoint()
    kept.config = replace(CONFIG, runtime="loops", threads=2)
    del kept.state["used"]
    checkpoint.save(folder / "run", kept)
    monkeypatch.setattr("byhand.runtimes.loops.missing", lambda: ["numba"])
    done = byhand("train", "--resume", "run", "--data", "text.txt", cwd=folder)
    assert done.returncode == 0, done.stderr
    assert b"runtime numpy: the loops runtime needs numba." in done.stderr
    assert checkpoint.load(folder / "run").state["used"] == {"runtime": "numpy"}
