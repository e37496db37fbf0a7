"""Training: what an update does, and that where a run stops changes nothing."""

import itertools
from contextlib import suppress
from dataclasses import fields, replace
from functools import cache
from hashlib import sha256
from pathlib import Path
from typing import Literal, get_args, get_origin, get_type_hints

import numpy as np
import pytest

from byhand.config import ModelConfig, OptimConfig, TrainConfig
from byhand.corpus.chats import ChatCorpus
from byhand.corpus.dataset import ByteDataset, Corpus
from byhand.errors import CheckpointError, ConfigError, DataError, NonFiniteError
from byhand.files.run_folder import MODEL
from byhand.runs import checkpoint, metrics
from byhand.runs.contents import OPTIMIZER
from byhand.runs.run import begin, resume, training
from byhand.runs.text import require_same_text
from byhand.runs.trainer import Trainer
from byhand.runtimes.protocol import to_train
from byhand.runtimes.provenance import resumed
from byhand.tokenizers import registry
from byhand.tokenizers.byte import BYTES
from byhand.tracing import Trace
from byhand.update_rules import unread
from interrupts import at_every_point
from toy_tokenizers import PairTokenizer, byte_pairs

TEXT = np.frombuffer(b"".join(b"line %d of a text; " % (i * i) for i in range(200)), dtype=np.uint8)
CONFIG = TrainConfig(
    model=ModelConfig(seq_len=8, d_model=8, n_layers=2, n_heads=2, rope_original_len=2000),
    optim=OptimConfig(lr=1e-2, warmup_steps=5),
    steps=20,
    batch_size=3,
    grad_accum=2,
    eval_interval=7,
    eval_windows=5,
    save_interval=4,
)


def test_validation_computes_no_more_of_conversations_than_the_longest_of_a_chunk():
    """Tokens after a chunk's last answer are left out, and the loss is the same."""
    sizes, shapes = np.random.default_rng(1).integers(4, 40, 60), []
    ends = np.concatenate([[0], sizes.cumsum()])
    ids = np.random.default_rng(2).integers(0, 256, ends[-1]).astype(np.uint8)
    chats = ChatCorpus(ids, np.ones(len(ids), bool), ends, BYTES, "talks")
    config = replace(CONFIG, model=replace(CONFIG.model, seq_len=256), eval_windows=60, runtime="numpy")
    trainer = Trainer(config, chats, chats)
    tokens, targets = trainer.val_windows
    whole = trainer.session.loss(tokens, targets)
    of_session = trainer.session.loss
    trainer.session.loss = lambda t, y, **more: shapes.append(t.shape) or of_session(t, y, **more)
    assert trainer.evaluate() == pytest.approx(whole, rel=1e-6)
    assert tokens.shape == (60, 256)
    assert shapes[0][1] < shapes[-1][1] == 48
    of_a_text = Trainer(config, ByteDataset(TEXT), ByteDataset(TEXT))
    assert of_a_text._chunk_at(0)[0].shape == (8, 256)


OTHER = {  # another value of each setting that is not a choice among names
    "vocab_size": 300, "seq_len": 4, "d_model": 16, "n_layers": 1, "n_heads": 1, "n_kv_heads": 1, "d_head": 6,
    "d_ff": 7,
    "rope_base": 10.0, "rope_fraction": 0.5, "attention_window": 2, "norm_eps": 0.5, "logit_softcap": 2.0, "lr": 5e-3,
    "min_lr": 0.0, "warmup_steps": 0, "cooldown": 0.5, "embedding_lr": 1e-3, "head_lr": 1e-3, "vector_lr": 1e-3,
    "muon_lr": 1e-3, "muon_momentum": 0.5, "beta1": 0.5, "beta2": 0.5, "eps": 0.1, "weight_decay": 0.5,
    "grad_clip": 0.01, "ema": 0.5, "rope_factor": 2.0, "rope_original_len": 16, "rope_slow": 20.0, "rope_fast": 2.0,
    "rope_attention": 2.0, "rope_window_base": 10.0, "attention_divisor": 3.0, "layer_pattern": "gn",
    "lora": 2, "lora_alpha": 3.0, "lora_on": "mlp.*",
}  # fmt: skip
LAYERS = {
    "layer_pattern": {"positions": "rotary"},
    "rope_window_base": {"attention_window": 3, "layer_pattern": "w"},
}


def other_values(cls) -> dict[str, list]:
    """Return other values of each setting: all choices, or one number."""
    found: dict[str, list] = {}
    for f in fields(cls):
        hint = get_type_hints(cls)[f.name]
        choices = (
            get_args(hint) if get_origin(hint) is Literal else (True, False) if hint is bool else (OTHER[f.name],)
        )
        found[f.name] = [choice for choice in choices if choice != f.default]
    return found


@cache
def weights_of_a_run(**settings) -> dict[str, bytes]:
    """Return the weights and averages after six steps with some settings of the model and the optimizer."""
    model, optim = CONFIG.model, OptimConfig(lr=1e-2, warmup_steps=2)
    for name, value in settings.items():
        if hasattr(model, name):
            model = replace(model, **{name: value})
        else:
            optim = replace(optim, **{name: value})
    config = replace(CONFIG, model=model, optim=optim, steps=6, eval_interval=0, eval_windows=1, grad_accum=1)
    made = trainer(replace(config, runtime="numpy"))
    made.prepare()
    for _ in range(config.steps):
        made.update()
    found = made.checkpoint()
    return {name: a.tobytes() for name, a in {**found.parameters, **(found.averages or {})}.items()}


MODEL_AND_OPTIMIZER = {**other_values(ModelConfig), **other_values(OptimConfig)}


def beside(name):
    """Return the settings that one needs, each with a value that suits it."""
    needed, values = next((f.metadata.get("needs") for f in fields(ModelConfig) if f.name == name), None) or ("", ())
    return {**beside(needed), needed: values[-1]} if needed else {}


@pytest.mark.parametrize("name", MODEL_AND_OPTIMIZER)
def test_a_setting_changes_a_run_and_says_without_which_other_it_does_not(name):
    metadata = next(f.metadata for cls in (ModelConfig, OptimConfig) for f in fields(cls) if f.name == name)
    needed, working = metadata.get("needs", (None, (None,)))
    if name in (others := unread(OptimConfig())):  # a setting of another update
        needed, working = "optimizer", (others[name],)
    for value in MODEL_AND_OPTIMIZER[name]:
        with_it = {} if needed is None else {**beside(needed), needed: working[-1]}
        with_it |= LAYERS.get(name, {})
        assert weights_of_a_run(**with_it, **{name: value}) != weights_of_a_run(**with_it), f"{name} changes nothing"
    for lacking in [v for v in MODEL_AND_OPTIMIZER.get(needed, []) if v not in working]:
        with suppress(ConfigError):  # refused, which says it too
            idle = weights_of_a_run(**{needed: lacking, name: MODEL_AND_OPTIMIZER[name][0]})
            assert idle == weights_of_a_run(**{needed: lacking})


def trainer(config: TrainConfig = CONFIG, start: checkpoint.Checkpoint | None = None) -> Trainer:
    train, val = ByteDataset(TEXT).split(0.1, config.model.seq_len)
    return Trainer(config, train, val, start)


def digest(run: Path) -> str:
    """SHA-256 of the last weights and moments."""
    path = checkpoint.load(run).path
    assert path is not None
    return sha256((path / MODEL).read_bytes() + (path / OPTIMIZER).read_bytes()).hexdigest()


@pytest.fixture(scope="module")
def uninterrupted(tmp_path_factory):
    run = tmp_path_factory.mktemp("whole")
    records = list(training(trainer(replace(CONFIG, keep=100)), run))
    assert [p.name for p in sorted(run.glob("step-*"))] == [f"step-{n:08d}" for n in (4, 8, 12, 16, 20)]
    return digest(run), records


STOPS = [0, 1, 4, 5, 6, 7, 14, 19, 20]


@pytest.mark.parametrize(
    "stop", [*STOPS, *(pytest.param(n, marks=pytest.mark.slow) for n in range(21) if n not in STOPS)]
)
def test_a_run_stopped_anywhere_and_resumed_ends_with_the_same_bits(tmp_path, uninterrupted, stop):
    """Warm-up ends at 5, evaluations are at 7 and 14, every update accumulates two batches."""
    expected, records = uninterrupted
    first = trainer()
    before = list(itertools.islice(training(first, tmp_path), stop))
    first.save(tmp_path)
    del first
    second = trainer(start=checkpoint.load(tmp_path))
    after = list(training(second, tmp_path))
    if stop < CONFIG.steps:
        assert digest(tmp_path) == expected

    def facts(progress):
        return (progress.step, progress.loss, progress.lr, progress.grad_norm, progress.tokens, progress.val_loss)

    assert [facts(p) for p in before + after] == [facts(p) for p in records]


def test_evaluations_are_where_the_settings_say(uninterrupted):
    _, records = uninterrupted
    assert [p.step for p in records] == list(range(1, 21))
    assert [p.step for p in records if p.val_loss is not None] == [7, 14, 20]


def test_a_step_is_saved_once_it_was_yielded(tmp_path):
    """What is written of a step when it is yielded, its line of metrics, is there before its checkpoint."""
    newest = [
        max((int(p.name[5:]) for p in tmp_path.glob("step-*")), default=0) for _ in training(trainer(), tmp_path)
    ]
    assert newest == [(step - 1) // 4 * 4 for step in range(1, 21)]
    assert checkpoint.load(tmp_path).step == 20


def test_it_learns(uninterrupted):
    _, records = uninterrupted
    assert records[-1].val_loss < records[0].loss - 1


def test_accumulated_micro_batches_are_one_large_batch():
    """In float64 the mean of two micro-batches' gradients is the gradient of both together."""
    config = replace(CONFIG, dtype="float64")
    accumulated = trainer(config)
    accumulated.update()
    whole = trainer(replace(config, grad_accum=1, batch_size=6))
    batches = [ByteDataset(TEXT).split(0.1, 8)[0].sample_batch(3, 8, g) for g in _generators(2)]
    whole.train = _Fixed(*(np.concatenate(part) for part in zip(*batches, strict=True)))
    whole.update()
    for name, p in accumulated.model.parameters().items():
        np.testing.assert_allclose(p.data, whole.model.parameters()[name].data, rtol=0, atol=1e-12, err_msg=name)


def _generators(count):
    from byhand.corpus.dataset import batch_generator

    return [batch_generator(CONFIG.seed, i) for i in range(count)]


class _Fixed:
    """A data set with one batch."""

    def __init__(self, tokens, targets):
        self.batch = tokens, targets

    def sample_batch(self, batch_size, seq_len, rng, rows):
        return self.batch


@pytest.mark.parametrize("name", ["wpe", "blocks.1.attn.w_qkv", "lm_head.b"])
@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_a_parameter_that_is_not_finite_is_named_before_anything_is_updated(name, bad):
    run = trainer()
    run.update()
    parameter = run.model.parameters()[name]
    broken = parameter.data.copy()
    broken.flat[1] = bad
    parameter.data = broken
    before = {n: p.data.copy() for n, p in run.model.parameters().items()}
    with pytest.raises(NonFiniteError, match=rf"step 2: {name} is not finite"):
        run.update()
    assert run.step == 1
    assert run.optimizer.t == 1
    for n, p in run.model.parameters().items():
        np.testing.assert_array_equal(p.data, before[n])


def test_a_loss_that_overflows_names_the_first_activation():
    run = trainer()
    w_fc = run.model.parameters()["blocks.1.mlp.w_fc"]
    w_fc.data = np.full_like(w_fc.data, 3e38) * np.sign(w_fc.data)
    with pytest.raises(NonFiniteError, match=r"step 1: blocks\.1\.mlp\.pre is not finite"):
        run.update()


def test_another_text_is_refused():
    start = checkpoint.Checkpoint(CONFIG, {}, {}, {"text": {"path": "a", "bytes": 3, "sha256": "abc"}})
    require_same_text(start, {"path": "elsewhere", "sha256": "abc"})
    with pytest.raises(CheckpointError, match="the text changed since the run began"):
        require_same_text(start, {"path": "a", "sha256": "abd"})


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_everything_has_the_precision_that_was_asked_for(dtype):
    run = trainer(replace(CONFIG, dtype=dtype))
    run.update()
    arrays = (
        {n: p.data for n, p in run.model.parameters().items()}
        | run.optimizer.moments["m"]
        | run.optimizer.moments["v"]
    )
    assert {str(a.dtype) for a in arrays.values()} == {dtype}


@pytest.mark.parametrize("scale", [1e21, 1e25])
def test_a_model_whose_loss_overflows_is_not_committed_though_it_is_finite(tmp_path, scale):
    run = trainer(replace(CONFIG, runtime="numpy"))
    run.update()
    run.save(tmp_path)
    run.update()
    for p in run.model.parameters().values():
        p.data = (p.data * scale).astype(p.dtype)
    assert all(np.isfinite(p.data).all() for p in run.model.parameters().values())
    with pytest.raises(NonFiniteError, match="step 2: the validation loss is not finite; it was not saved"):
        run.save(tmp_path)
    assert [p.name for p in tmp_path.glob("step-*")] == ["step-00000001"]


def test_what_was_asked_for_is_kept_and_what_was_used_beside_it(tmp_path):
    asked = replace(CONFIG, runtime="auto", threads=0)
    run = trainer(asked)
    run.save(tmp_path)
    loaded = checkpoint.load(tmp_path)
    assert loaded.config == asked
    assert loaded.state["used"] == run.used
    assert run.used["runtime"] in ("loops", "numpy")
    assert run.change == ""
    again = trainer(loaded.config, loaded)
    assert (again.used, again.change) == (run.used, "")


def test_a_run_that_goes_on_otherwise_says_so_in_a_line(tmp_path):
    trainer().save(tmp_path)
    loaded = checkpoint.load(tmp_path)
    loaded.state["used"] = {"runtime": "loops", "threads": 64, "blas": "register tiles"}
    again = trainer(replace(loaded.config, runtime="numpy"), loaded)
    assert again.used == {"runtime": "numpy"}
    assert again.change.startswith("so far loops on 64 threads (register tiles) computed this run, now numpy goes on")
    assert "\n" not in again.change


@pytest.mark.parametrize("used", ["loops", 7, [], {}, {"threads": "9" * 5000}, {"threads": True}, {"runtime": {}}])
def test_whatever_a_checkpoint_says_was_used_it_goes_on(tmp_path, used):
    config = replace(CONFIG, runtime="numpy")
    trainer(config).save(tmp_path)
    loaded = checkpoint.load(tmp_path)
    loaded.state["used"] = used
    again = trainer(loaded.config, loaded)
    again.update()
    assert len(again.change) < 400


def without_numba(monkeypatch):
    monkeypatch.setattr("byhand.runtimes.loops.missing", lambda: ["numba"])


def test_a_run_of_the_loops_goes_on_without_them(tmp_path, monkeypatch):
    trainer(replace(CONFIG, runtime="auto")).save(tmp_path)
    loaded = checkpoint.load(tmp_path)
    loaded.state["used"] = {"runtime": "loops", "threads": 2, "blas": "register tiles"}
    without_numba(monkeypatch)
    again = trainer(loaded.config, loaded)
    assert again.used == {"runtime": "numpy"}
    assert "now numpy goes on" in again.change
    again.update()


def test_a_checkpoint_that_holds_what_was_used_in_place_of_what_was_asked_goes_on_too(tmp_path, monkeypatch):
    """As in runs saved before `used` was kept: it is unknown whether loops were asked for."""
    trainer().save(tmp_path)
    loaded = checkpoint.load(tmp_path)
    del loaded.state["used"]
    without_numba(monkeypatch)
    again = trainer(replace(loaded.config, runtime="loops", threads=2), loaded)
    assert again.used == {"runtime": "numpy"}
    with pytest.raises(ConfigError, match="needs numba"):
        trainer(replace(CONFIG, runtime="loops"))


@pytest.mark.parametrize(
    ("cores", "asked", "threads"), [(4, 0, 3), (3, 0, 3), (2, 0, 2), (4, 1, 1), (1, 2, 2)], ids=str
)
def test_a_resumed_run_keeps_its_threads_if_there_are_cores_for_them(monkeypatch, cores, asked, threads):
    """The shares of a batch decide the order of sums, so other threads give other last digits."""
    monkeypatch.setattr("byhand.runtimes.provenance.cores", lambda: cores)
    used = {"runtime": "loops", "threads": 3, "blas": "register tiles"}
    request = resumed(to_train(replace(CONFIG, threads=asked)), used)
    assert (request.runtime, request.threads or cores) == ("auto", threads)


def test_an_interrupt_anywhere_in_an_update_leaves_a_run_that_can_go_on(tmp_path):
    """The step counts what the weights have seen, so that going on gives the bits of an undisturbed run."""
    config = replace(CONFIG, runtime="numpy", batch_size=1, grad_accum=1)
    expected, run, points = trainer(config), None, 0
    for _ in range(3):
        expected.update()
    expected = [p.data.tobytes() for p in expected.model.parameters().values()]

    def interrupted():
        nonlocal run
        run = trainer(config)
        run.update()
        run.update()

    files = ("byhand/runs/trainer.py", "byhand/runtimes/numpy/session.py", "byhand/optim.py")
    for point in at_every_point(interrupted, *files, every=19):  # each is 30 ms
        points += 1
        if run is None:
            continue
        while run.step < 3:
            run.update()
        assert [p.data.tobytes() for p in run.model.parameters().values()] == expected, point
    assert points > 15


BPE = byte_pairs()
OF_BPE = replace(CONFIG, model=replace(CONFIG.model, vocab_size=BPE.vocab_size))
HELLO = b"".join(b"hello the other house %d, all those aaaa. " % (i * i) for i in range(100))


def bpe_trainer(config=OF_BPE, start=None, tokenizer=BPE):
    return Trainer(config, *Corpus(HELLO, tokenizer).split(0.1, config.model.seq_len), start)


@pytest.mark.parametrize("stop", [0, 3, 8, 19])
def test_a_run_on_other_tokens_resumes_with_its_checkpoints_tokenizer(tmp_path, stop):
    whole, cut = tmp_path / "whole", tmp_path / "cut"
    records = list(training(bpe_trainer(), whole))
    before = list(itertools.islice(training(first := bpe_trainer(), cut), stop))
    first.save(cut)
    start = checkpoint.load(cut)
    assert start.tokenizer.digest == BPE.digest
    after = list(training(bpe_trainer(start=start, tokenizer=start.tokenizer), cut))
    assert digest(cut) == digest(whole)
    assert [p.loss for p in before + after] == [p.loss for p in records]


def test_metrics_count_bytes(tmp_path):
    trainer = bpe_trainer()
    targets = trainer.val_windows[1]
    list(training(trainer, tmp_path))
    rows = metrics.read(tmp_path)
    assert len(rows) == 20
    size = len(BPE.decode(targets.ravel().tolist())) / targets.size
    assert size > 1.2
    for row in rows:
        assert row["bytes_per_token"] == size
        if "val/loss" in row:
            nats = row["val/loss"] * targets.size
            assert row["val/bpb"] == pytest.approx(nats / (size * targets.size * np.log(2)), rel=1e-14)
    assert metrics.unit(rows) == "token"


def test_metrics_of_bytes_are_as_they_were(tmp_path, uninterrupted):
    _, records = uninterrupted
    for progress in records:
        metrics.append(tmp_path, progress)
    rows = metrics.read(tmp_path)
    keys = ["step", "tokens", "train/loss", "lr", "grad_norm", "train/tok_per_sec"]
    assert {tuple(row) for row in rows} == {(*keys,), (*keys, "val/loss", "val/bpb")}
    assert all(row["val/bpb"] == row["val/loss"] / np.log(2) for row in rows if "val/loss" in row)
    assert metrics.unit(rows) == "byte"


def test_windows_of_special_tokens_alone_have_no_bits_per_byte(tmp_path):
    pairs = PairTokenizer(b"ab", special=True)
    config = replace(CONFIG, model=replace(CONFIG.model, vocab_size=5))
    tokens = np.concatenate([np.zeros(50, np.uint16), np.full(50, 4, np.uint16)])
    run = Trainer(config, *Corpus(tokens, pairs).split(0.2, 8))
    metrics.append(tmp_path, replace(run.update(), val_loss=run.evaluate()))
    (row,) = metrics.read(tmp_path)
    assert "val/loss" in row
    assert "val/bpb" not in row


def test_tokenizers_that_do_not_fit_are_refused_in_time(tmp_path, monkeypatch):
    with pytest.raises(DataError, match="bpe tokenizer has 265 tokens, but the model's vocab_size is 256"):
        bpe_trainer(CONFIG)
    train, val = Corpus(HELLO, BPE), ByteDataset(HELLO)
    with pytest.raises(DataError, match="use different tokenizers"):
        Trainer(OF_BPE, train, val)
    run = bpe_trainer()
    run.save(tmp_path)
    start = checkpoint.load(tmp_path)
    with pytest.raises(DataError, match="not encoded with the run's tokenizer"):
        Trainer(OF_BPE, val, val, start)
    monkeypatch.setattr(registry, "_kinds", {"bpe": None})
    with pytest.raises(DataError, match="cannot be stored"):
        next(training(run, tmp_path))
    assert run.step == 0


def test_gradients_of_a_live_run_are_read_from_its_batches():
    """A caller may compute them with the current model; the next update finds the same."""
    run = trainer(replace(CONFIG, model=replace(CONFIG.model), dtype="float64"))
    for _ in range(3):
        run.update()
    batches = run.batches(run.step)
    assert [tokens.shape for tokens, _ in batches] == [(3, 8)] * 2
    traces = [Trace.of(lambda batch=batch: run.model.loss(*batch)) for batch in batches]
    gradients = [trace.backward().by_name for trace in traces]
    squares = [((gradients[0][n] + gradients[1][n]) / 2) ** 2 for n in run.model.parameters()]
    progress = run.update()
    assert progress.loss == pytest.approx(np.mean([trace.result.item() for trace in traces]), rel=1e-12)
    assert progress.grad_norm == pytest.approx(sum(s.sum() for s in squares) ** 0.5, rel=1e-9)


def test_batches_of_any_step_at_any_time():
    run = trainer()
    later = run.batches(7)
    for _ in range(2):
        run.update()
    for before, now in zip(later, run.batches(7), strict=True):
        assert all(np.array_equal(a, b) for a, b in zip(before, now, strict=True))
    assert run.step == 2


def test_a_run_that_is_taken_up_drops_the_lines_after_its_checkpoint(tmp_path):
    """Otherwise its steps would appear twice; a new run drops lines left by one that had no checkpoint."""
    (tmp_path / "text.txt").write_bytes(TEXT.tobytes())
    config, folder = replace(CONFIG, data=replace(CONFIG.data, data=str(tmp_path / "text.txt"))), tmp_path / "run"
    for _ in range(2):  # a kill before the first checkpoint leaves lines alone
        with begin(config, folder) as run:
            list(itertools.islice(run.train(run.trainer()), 3))
        assert [row["step"] for row in metrics.read(folder)] == [1, 2, 3]
    with begin(config, folder) as run:
        list(itertools.islice(run.train(run.trainer()), 6))
    with resume(folder, {}) as run:
        assert [row["step"] for row in metrics.read(folder)] == [1, 2, 3, 4]
        next(run.train(run.trainer()))
    assert [row["step"] for row in metrics.read(folder)] == [1, 2, 3, 4, 5]
