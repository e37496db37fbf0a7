"""The laws of every registered update: it trains, is saved, resumed, counted, explained and found on every runtime.

An update is an equation with `role="update"`; nothing here names one.
"""

import inspect
from dataclasses import fields, replace

import numpy as np
import pytest

from byhand.book.explain.explainer import Explainer
from byhand.book.finding.search import search
from byhand.cli.arguments.settings import settings as settings_of_flags
from byhand.config import GROUPS, ModelConfig, OptimConfig, TrainConfig
from byhand.corpus.dataset import ByteDataset
from byhand.engine import Tensor
from byhand.errors import CheckpointError, ExplainError
from byhand.files.tensor_file import tensors
from byhand.memory import training_bytes
from byhand.model import TinyGPT, declared
from byhand.optim import Optimizer
from byhand.runs import checkpoint
from byhand.runs.contents import OPTIMIZER, due
from byhand.runs.run import training
from byhand.runs.trainer import Trainer
from byhand.runtimes.protocol import to_train
from byhand.tracing.updates import PARTS, parts_of
from byhand.update_rules import OF_A_PARAMETER, rule_of, settings_of, state_of, state_shapes, unread, updates, used_by
from interrupts import at_every_point
from runtimes.registered import NAMES, OTHERS, REFERENCE, SUITED, able, session_of
from runtimes.steps import bits, copied, made, put

UPDATES = {update.name: update for update in updates()}
HELD = ("adamw", "muon")  # by `runtimes/test_training.py` on every runtime: XLA need not compile them here too
MODEL = ModelConfig(vocab_size=64, seq_len=8, d_model=8, n_layers=1, n_heads=2, attention_bias="none", mlp_bias=False)
TEXT = np.random.default_rng(0).integers(0, 64, 4000).astype(np.uint8)
EVERY = pytest.mark.parametrize("name", UPDATES)


def config_of(name, runtime=REFERENCE, **optim):
    optim = OptimConfig(optimizer=name, warmup_steps=1, lr=1e-3, **optim)
    return TrainConfig(
        model=MODEL,
        optim=optim,
        steps=4,
        batch_size=2,
        grad_accum=2,
        eval_windows=3,
        save_interval=2,
        runtime=runtime,
    )


def trainer(config, start=None):
    train, val = ByteDataset(TEXT).split(0.1, MODEL.seq_len)
    return Trainer(config, train, val, start)


def optimizer_of(name, **optim):
    return Optimizer(OptimConfig(optimizer=name, lr=0.01, **optim), declared(MODEL))


@EVERY
def test_its_symbols_are_those_of_an_update(name):
    """(theta, g, state, lr, t) -> (theta', state), all state in the parameter's shape."""
    update = UPDATES[name]
    names, state = [symbol.name for symbol in update.inputs], [symbol.name for symbol in state_of(update)]
    assert names in (["theta", "g", *state, "lr"], ["theta", "g", *state, "lr", "t"])
    assert [symbol.name for symbol in update.results] == ["theta", *state], (
        "results are theta and the state, in order"
    )
    assert {symbol.shape for symbol in (*update.inputs[:2], *state_of(update))} == {update.inputs[0].shape}
    assert update.inputs[0].shape in ("(...)", "(..., M, N)"), "of all parameters, or of matrices"
    assert not {"average", "update"} & {*state}, "these names are taken"
    assert "." not in "".join(state), "files write KIND.PARAMETER"
    assert update.title.endswith(" update"), "`byhand info` leaves that out"


@EVERY
def test_its_settings_are_fields_of_the_configuration(name):
    known, required = {f.name for f in fields(OptimConfig)}, settings_of(UPDATES[name])
    lacking = [field for field in required.values() if field not in known]
    assert not lacking, f"give {lacking} a field of OptimConfig in config.py, or the setting a default"
    assert "weight_decay" in required, "--weight-decay and --decay act on every update"
    rules = [rule_of(OptimConfig(optimizer=name), p) for p in declared(MODEL).values()]
    for rule in rules:
        inspect.signature(rule.equation.forward).bind(*rule.equation.inputs, **rule.static)
        assert rule.static.get(OF_A_PARAMETER, 1) in (1, rule.parameter.packed)
    assert name in {rule.equation.name for rule in rules}
    assert unread(OptimConfig(optimizer=name)).keys() <= known
    assert not set(required.values()) & unread(OptimConfig(optimizer=name)).keys()


@EVERY
def test_it_is_offered_and_found(name):
    assert name in settings_of_flags(TrainConfig)["optimizer"].kind
    assert search(name)[0].finding.name == name, "an item of docs/build/where/data/absent.toml is in front of it"
    update = UPDATES[name]
    assert search(update.title)[0].finding.name == name


@EVERY
def test_the_first_part_of_its_arithmetic_is_the_parameter_and_the_second_its_change(name):
    """`explain NAME.update` shows the second part alone."""
    optimizer, rng = optimizer_of(name), np.random.default_rng(1)
    tensors = {n: Tensor(rng.standard_normal(p.shape)) for n, p in declared(MODEL).items()}
    for n, tensor in tensors.items():
        rule, inputs = optimizer.application(n, tensor, rng.standard_normal(tensor.shape))
        arrays, index = list(inputs.values()), (0,) * tensor.ndim
        result = rule.equation.forward(*arrays, **rule.static)[0]
        term = rule.equation.terms(index, arrays, result, **rule.static)
        before, change = term.parts
        assert (term.op, before.value) == ("sum", tensor.data[index])
        assert before.value + change.value == pytest.approx(float((result[0] if rule.state else result)[index]))


@pytest.mark.parametrize(
    ("name", "runtime"),
    [pytest.param(name, runtime, marks=pytest.mark.slow if runtime not in SUITED and name in HELD else ())
     for name in UPDATES for runtime in NAMES],
)  # fmt: skip
def test_a_run_that_goes_on_has_the_bits_of_one_that_was_not_interrupted(name, runtime, tmp_path):
    config = config_of(name, runtime, ema=0.9)
    able(to_train(config))
    records = list(training(trainer(config), tmp_path / "whole"))
    steps = training(trainer(config), tmp_path / "stopped")
    next(step for step in steps if step.step == 3)  # what comes after the second step's checkpoint
    start = checkpoint.load(tmp_path / "stopped")
    assert start.step == 2
    rest = list(training(trainer(config, start), tmp_path / "stopped"))
    assert [r.val_loss for r in rest] == [r.val_loss for r in records[2:]]
    for path in sorted((tmp_path / "whole/step-00000004").glob("*.safetensors")):
        assert path.read_bytes() == (tmp_path / "stopped/step-00000004" / path.name).read_bytes(), path.name


@EVERY
def test_a_checkpoint_holds_what_its_rules_say_and_cannot_be_saved_without(name, tmp_path):
    config = config_of(name, ema=0.5)
    list(training(made := trainer(config), tmp_path))
    shapes = state_shapes(config.optim, declared(MODEL))
    assert due(config)[OPTIMIZER] == shapes
    content = np.fromfile(tmp_path / "step-00000004" / OPTIMIZER, np.uint8)
    read = tensors(lambda begin, size: content[begin : begin + size].copy(), len(content), shapes, "float32")
    assert read.keys() == shapes.keys()
    for kind, arrays in made.checkpoint().moments.items():
        lacking = {**made.checkpoint().moments, kind: dict(list(arrays.items())[1:])}
        with pytest.raises(CheckpointError, match=rf"could not be read again: it lacks {kind}\..*; it was not saved"):
            checkpoint.save(tmp_path / "other", replace(made.checkpoint(), moments=lacking))
        one = next(iter(arrays))
        changed = {**made.checkpoint().moments, kind: {**arrays, one: arrays[one][:1]}}
        with pytest.raises(CheckpointError, match=rf"{kind}\.{one} is "):
            checkpoint.save(tmp_path / "other", replace(made.checkpoint(), moments=changed))
    more = {**made.checkpoint().moments, "other": {"wte": made.checkpoint().parameters["wte"]}}
    with pytest.raises(CheckpointError, match=r"'other\.wte', which the model does not know"):
        checkpoint.save(tmp_path / "other", replace(made.checkpoint(), moments=more))
    assert not list((tmp_path / "other").glob("step-*"))


@EVERY
@pytest.mark.parametrize("ema", [0.0, 0.9])
def test_memory_counts_what_is_kept(name, ema):
    session = session_of(TinyGPT(MODEL), optimizer_of(name, ema=ema), REFERENCE)
    session.step([batch(0)], 1.0)
    require_counted(session, config_of(name, ema=ema))


@EVERY
def test_its_next_update_is_explained(name):
    """Each result and the change, of parameters of each group, are what the optimizer then makes."""
    model, optimizer = TinyGPT(MODEL, seed=1, dtype="float64"), optimizer_of(name)
    tokens, targets = batch(0)
    for _ in range(2):
        model.zero_grad()
        model.loss(tokens, targets).backward()
        optimizer.step(model.parameters())
    explainer = Explainer(model, tokens, targets, optimizer)
    of_group = {p.group: n for n, p in declared(MODEL).items()}
    before = {n: p.data for n, p in model.parameters().items()}
    said, index = {}, {n: (1,) * len(before[n].shape) for n in of_group.values()}
    for n in of_group.values():
        parts = parts_of(optimizer.rule(n, before[n]))
        said |= {(n, part): explainer.explain(f"{n}.{part}", index[n]) for part in parts}
        assert {f"{n}.{part}" for part in parts} <= set(explainer.names())
        for part in set(PARTS) - set(parts):
            with pytest.raises(ExplainError, match=f"keeps no {part}"):
                explainer.explain(f"{n}.{part}", index[n])
    model.zero_grad()
    model.loss(tokens, targets).backward()
    optimizer.step(model.parameters())
    for (n, part), explanation in said.items():
        theta = model.parameters()[n].data
        arrays = {"theta": theta, "update": theta - before[n]}
        array = arrays.get(part) if part in arrays else optimizer.moments[part][n]
        assert explanation.value == pytest.approx(float(array[index[n]]), rel=1e-9, abs=1e-15), (n, part)


@EVERY
@pytest.mark.parametrize("runtime", OTHERS)
@pytest.mark.parametrize("kernels", [True, False], ids=["kernels", "without kernels"])
def test_other_runtimes_update_as_the_reference_does(name, runtime, kernels, monkeypatch):
    """Rounding may turn the sign of a gradient near zero, and with it a whole step: of a few numbers alone."""
    able(replace(to_train(config_of(name, runtime))))
    if not kernels:
        if runtime != "loops":
            pytest.skip("it has no kernels of updates")
        without_kernels(monkeypatch)
    sessions = [
        session_of(TinyGPT(MODEL, seed=2), optimizer_of(name, ema=0.5), each) for each in (runtime, REFERENCE)
    ]
    for session in sessions:
        for step in range(3):
            session.optimizer.lr = 0.01
            session.step([batch(step), batch(step + 9)], 1.0)
        assert session.optimizer.t == 3
    require_counted(sessions[0], config_of(name, runtime, ema=0.5))
    ours, theirs = (session.state().dictionaries() for session in sessions)
    rate = 0.01 * max(optimizer_of(name).rule(n, p.data).scale for n, p in TinyGPT(MODEL).parameters().items())
    for part, others in zip(ours, theirs, strict=True):
        assert part.keys() == others.keys()
        apart = np.concatenate([(abs(part[n] - others[n]) > 0.05 * rate).ravel() for n in part])
        assert apart.mean() < 0.02


@EVERY
def test_an_interrupt_in_an_update_without_kernels_changes_all_or_nothing(name, monkeypatch):
    """NumPy updates what the loops have summed: the arrays and the count change in one assignment."""
    pytest.importorskip("numba", reason="Numba is not installed")
    without_kernels(monkeypatch)
    expected = {}
    for steps in (1, 2):
        session = loops(name)
        for step in range(steps):
            session.step([batch(step)], 1.0)
        expected[steps] = bits(session)
    session, counted = loops(name), set()
    session.step([batch(0)], 1.0)
    start = copied(session)

    def run():
        put(session, start, 1)
        session.step([batch(1)], 1.0)

    for point in at_every_point(run, "byhand/optim.py", "loops/run/training.py", f"equations/{name}.py", every=3):
        if len(session.optimizer.moments[next(iter(session.optimizer.moments))]):
            t = session.optimizer.t
            assert bits(session) == expected[t], (point, t)
            counted.add(t)
    assert counted == {1, 2}


@EVERY
def test_settings_that_a_run_does_not_read_are_those_of_other_updates(name):
    read = {
        field for update in used_by(OptimConfig(optimizer=name), GROUPS) for field in settings_of(update).values()
    }
    for field, other in unread(OptimConfig(optimizer=name)).items():
        assert field not in read
        assert other != name
        assert field in settings_of(UPDATES[other]).values() or field == f"{other}_lr"


def require_counted(session, config):
    """Parameters, gradients, state and averages are what the memory's estimate counts; the rest is the text's."""
    kept = sum(array.nbytes for part in session.state().dictionaries() for array in part.values())
    gradients = sum(array.nbytes for array in session.state().parameters.values())
    read = 16 * MODEL.seq_len * (config.grad_accum * config.batch_size + config.eval_windows)
    assert training_bytes(config, 0) - read == kept + gradients


def without_kernels(monkeypatch):
    from byhand.runtimes.loops.machine.kernel import KERNELS

    for kernel in [kernel for kernel in KERNELS.values() if kernel.settings]:
        monkeypatch.setitem(KERNELS, kernel.name, replace(kernel, settings=None))


def loops(name):
    return session_of(TinyGPT(MODEL, seed=2), optimizer_of(name), "loops", threads=2)


def batch(seed):
    return made(MODEL, (2, MODEL.seq_len), seed=seed)[0]
