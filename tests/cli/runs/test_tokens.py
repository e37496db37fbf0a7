"""A run on other tokens than bytes, begun in Python: every command goes by the tokenizer of its checkpoint."""

import json
import math
from dataclasses import replace
from hashlib import sha256
from itertools import islice
from pathlib import Path

import numpy as np
import pytest

from byhand.budget.choice import PlannedRun
from byhand.budget.probe import Cost
from byhand.cli.runs import minutes
from byhand.cli.runs.minutes import planned
from byhand.config import ModelConfig, OptimConfig, TrainConfig
from byhand.corpus.dataset import Corpus
from byhand.corpus.encoding import corpus_of
from byhand.corpus.texts import on_disk
from byhand.files import run_folder
from byhand.files.run_folder import MODEL
from byhand.runs import checkpoint, metrics
from byhand.runs.contents import OPTIMIZER
from byhand.runs.run import training
from byhand.runs.trainer import Trainer
from cli import inside
from cli.process import environment, error_line, with_kernels
from toy_tokenizers import byte_pairs

BPE = byte_pairs()
CONFIG = TrainConfig(
    model=ModelConfig(vocab_size=BPE.vocab_size, seq_len=16, d_model=16, n_heads=2),
    optim=OptimConfig(warmup_steps=3),
    steps=6,
    batch_size=2,
    eval_interval=3,
    eval_windows=4,
    save_interval=2,
)
TEXT = b"".join(b"hello the other house %d, all those aaaa; \xe4\xb8\xad\n" % (i * i) for i in range(100))


def begin(run, text, stop):
    """Train as a Python program does, until a step."""
    text = on_disk(text, str(text))
    identity = {"path": str(text.path), "bytes": len(text.content), "sha256": text.sha256}
    run_folder.begin(run)
    trainer = Trainer(CONFIG, *corpus_of(text, BPE).split(0.1, 16), record={"text": identity})
    list(islice(training(trainer, run), stop))
    trainer.save(run)


def weights(run):
    path = checkpoint.load(run).path
    assert path
    return sha256((path / MODEL).read_bytes() + (path / OPTIMIZER).read_bytes()).hexdigest()


@pytest.fixture(scope="module")
def cache(tmp_path_factory):
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("BYHAND_CACHE", str(with_kernels(tmp_path_factory.mktemp("cache"))))
        yield environment()["BYHAND_CACHE"]


@pytest.fixture(scope="module")
def run(tmp_path_factory, cache):
    """A run that a process resumed and finished."""
    folder = tmp_path_factory.mktemp("runs")
    text = folder / "text"
    text.write_bytes(TEXT)
    begin(folder / "whole", text, 6)
    begin(folder / "run", text, 3)
    done = inside.byhand("train", "--resume", "run", cwd=folder)
    assert done.returncode == 0, done.stderr
    said, tokens = done.stderr.decode(), len(BPE.encode(TEXT))
    assert f"({len(TEXT):,} bytes, {tokens:,} tokens)" in said
    last = metrics.read(folder / "run")[-1]
    loss = f"validation loss {last['val/loss']:.4f} nats per token = {last['val/bpb']:.4f} bits per byte\n"
    assert loss in done.stdout.decode()
    return folder / "run"


def test_a_process_goes_on_as_the_program_would_have(run):
    assert weights(run) == weights(run.parent / "whole")
    rows, whole = (metrics.read(folder) for folder in (run, run.parent / "whole"))
    assert [r["train/loss"] for r in rows] == [r["train/loss"] for r in whole]
    assert checkpoint.load(run).tokenizer.digest == BPE.digest


def test_a_complete_run_and_another_text(run, tmp_path):
    assert b"is complete: 6 of 6" in inside.byhand("train", "--resume", run, cwd=tmp_path).stdout
    begin(tmp_path / "run", run.parent / "text", 3)
    (tmp_path / "other").write_bytes(TEXT[1:])
    line = error_line(inside.byhand("train", "--resume", tmp_path / "run", "--data", "other", cwd=tmp_path))
    assert "the text changed since the run began" in line


def test_eval_counts_bytes(run, tmp_path):
    text = run.parent / "text"
    said = inside.byhand("eval", run, "--data", text).stdout.decode()
    result = json.loads(inside.byhand("eval", run, "--data", text, "--json").stdout)
    ids = BPE.encode(TEXT)
    assert result["tokens"] == len(ids) - 1
    assert result["bytes"] == len(TEXT) - len(BPE.decode(ids[:1]))
    assert result["bpb"] == pytest.approx(result["loss"] * result["tokens"] / (result["bytes"] * math.log(2)))
    assert (
        f"{result['loss']:.4f} nats per token = {result['bpb']:.4f} bits per byte over {result['tokens']:,} tokens, "
        f"{result['bytes']:,} bytes (windows of 16, stride 8)" in said
    )


def test_samples_are_text(run):
    done = inside.byhand("sample", run, "--prompt", "hello 中", "--max-new-tokens", 30, "--json")
    assert done.returncode == 0, done.stderr
    said = json.loads(done.stdout)
    assert said["prompt"] == "hello 中"
    streamed = inside.byhand("sample", run, "--prompt", "hello 中", "--max-new-tokens", 30).stdout.decode()
    assert streamed == f"hello 中{said['text']}\n"
    again = [inside.byhand("sample", run, "--max-new-tokens", 30, *p).stdout for p in ([], ["--prompt", "-"])]
    assert again[0] == again[1]
    newline = inside.byhand("sample", run, "--prompt", "\n", "--max-new-tokens", 30).stdout
    assert newline == b"\n" + again[0], "no prompt is continued as after a newline"


def test_ascii_only_leaves_whole_tokens_of_ascii(run, tmp_path):
    arguments = ["--ascii-only", "--temperature", 5, "--max-new-tokens", 200, "--json"]
    text = json.loads(inside.byhand("sample", run, *arguments, cwd=tmp_path).stdout)["text"]
    assert all(c in "\t\n" or " " <= c <= "~" for c in text)
    assert len(text) > 200, "some tokens have several bytes"


def test_info_and_plot_say_what_tokens_are(run, tmp_path):
    facts = json.loads(inside.byhand("info", run, "--json", cwd=tmp_path).stdout)
    assert facts["tokenizer"] == {"kind": "bpe", "tokens": 265, "sha256": BPE.digest}
    assert b"kind             bpe" in inside.byhand("info", run, cwd=tmp_path).stdout
    assert b"loss in nats per token, by step" in inside.byhand("plot", run, cwd=tmp_path).stdout


def test_explain_reads_tokens(run, tmp_path):
    ids = BPE.encode("hello the")
    assert len(ids) == 2
    done = inside.byhand("explain", run, f"wte[{ids[0]},3]", "--grad", "--prompt", "hello the", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert b"central difference" in done.stdout
    line = error_line(inside.byhand("explain", run, "logits[0,2,0]", "--prompt", "hello the", cwd=tmp_path))
    assert "logits has shape (1, 2, 265)" in line
    line = error_line(inside.byhand("explain", run, "loss", "--prompt", "hello", cwd=tmp_path))
    assert "the loss needs a token to predict. Use a --prompt of at least two tokens" in line
    line = error_line(inside.byhand("explain", run, "loss", "--prompt", "hello", "--targets", "xyz", cwd=tmp_path))
    assert "--targets holds 3 tokens and the prompt 1" in line


def test_a_run_of_bytes_says_nothing_of_tokenizers(tmp_path, cache):
    text = on_disk(_write(tmp_path / "text"), "text")
    config = TrainConfig(model=ModelConfig(seq_len=16, d_model=16), steps=1, batch_size=2, eval_windows=2)
    run_folder.begin(tmp_path / "run")
    list(training(Trainer(config, *corpus_of(text).split(0.1, 16)), tmp_path / "run"))
    assert b"tokenizer" not in inside.byhand("info", "run", cwd=tmp_path).stdout
    assert b"loss in nats per byte" in inside.byhand("plot", "run", cwd=tmp_path).stdout
    said = inside.byhand("eval", "run", "--data", "text", cwd=tmp_path).stdout.decode()
    assert said.endswith(f"bits per byte over {len(TEXT) - 1:,} bytes (windows of 16, stride 8)\n")
    assert "nats per byte = " in said


def _write(path):
    path.write_bytes(TEXT)
    return path


def test_tokens_in_the_cache_are_used_and_checked(run, cache, tmp_path):
    """A process reads tokens that another encoded, unless they are damaged."""
    (path,) = (Path(cache) / "tokens").iterdir()
    before = inside.byhand("eval", run, "--data", run.parent / "text", "--json")
    assert b"encoding" not in before.stderr
    content = path.read_bytes()
    path.write_bytes(np.flip(np.frombuffer(content, np.uint8)).tobytes())
    after = inside.byhand("eval", run, "--data", run.parent / "text", "--json")
    assert b"encoding" in after.stderr
    assert after.stdout == before.stdout
    assert path.read_bytes() == content


SPECIAL = "<|endoftext|>"
DOCUMENTS = (b"hello the other house, caf\xc3\xa9 \xff%d" + SPECIAL.encode()) * 40


@pytest.fixture(scope="module")
def learnt(tmp_path_factory, cache):
    """A folder with a text, and a tokenizer learnt from it, whose special token ends each document."""
    folder = tmp_path_factory.mktemp("learnt")
    (folder / "text").write_bytes(DOCUMENTS)
    done = inside.byhand(
        "tokenizer",
        "train",
        "text",
        "--encoding",
        "bytes",
        "--vocab-size",
        270,
        "--special",
        SPECIAL,
        "--out",
        "t.json",
        cwd=folder,
    )
    assert done.returncode == 0, done.stderr
    assert b"t.json: 270 tokens learnt from text" in done.stderr
    return folder


def test_train_with_a_tokenizer(learnt):
    """The vocabulary follows the tokenizer; the checkpoint holds it; bits are per byte of the text."""
    train = (
        "train",
        "--data",
        "text",
        "--encoding",
        "bytes",
        "--tokenizer",
        "t.json",
        "--seq-len",
        8,
        "--d-model",
        16,
        "--preset",
        "tiny",
    )
    done = inside.byhand(*train, "--steps", 4, "--eval-windows", 4, "--out", "run", cwd=learnt)
    assert done.returncode == 0, done.stderr
    loaded = checkpoint.load(learnt / "run")
    assert loaded.config.model.vocab_size == loaded.tokenizer.vocab_size == 270
    assert loaded.config.data.tokenizer == "t.json"
    assert loaded.tokenizer.encode(SPECIAL) == [269]
    (learnt / "t.json").rename(learnt / "moved.json")  # a run resumes without the file
    try:
        assert b"is complete" in inside.byhand("train", "--resume", "run", cwd=learnt).stdout
        result = json.loads(
            inside.byhand("eval", "run", "--data", "text", "--encoding", "bytes", "--json", cwd=learnt).stdout
        )
    finally:
        (learnt / "moved.json").rename(learnt / "t.json")
    ids = loaded.tokenizer.encode(DOCUMENTS)
    assert ids.count(269) == 40
    assert result["tokens"] == len(ids) - 1
    special = 40 * len(SPECIAL)
    assert result["bytes"] == len(DOCUMENTS) - special - len(loaded.tokenizer.decode(ids[:1]))
    assert result["bpb"] == pytest.approx(result["loss"] * result["tokens"] / (result["bytes"] * math.log(2)))
    assert b"kind             bpe" in inside.byhand("info", "run", cwd=learnt).stdout
    line = error_line(inside.byhand(*train, "--vocab-size", 200, "--out", "other", cwd=learnt))
    assert "the bpe tokenizer has 270 tokens, but the model's vocab_size is 200" in line
    line = error_line(inside.byhand("train", "--resume", "run", "--tokenizer", "t.json", cwd=learnt))
    assert "--tokenizer cannot change a run that is resumed" in line
    assert "there is no file or folder no.json" in error_line(
        inside.byhand("train", "--tokenizer", "no.json", cwd=learnt)
    )


def test_minutes_count_tokens(monkeypatch, capsys):
    """Losses are predicted from n-grams of bytes, and reported per token of several bytes."""
    asked = []

    def probed(runs, given, parts, budget, worth):
        asked.append((sum(map(len, parts)), worth))
        config = replace(CONFIG, steps=999)  # which read the text several times
        return PlannedRun(CONFIG, config, 1.0, 1.0, 2.0, False, 9, 0.1), Cost(1.0, 1.0, 1.0)

    monkeypatch.setattr(minutes, "warm_up", lambda *_: None)
    monkeypatch.setattr(minutes, "_probed", probed)
    monkeypatch.setattr(minutes, "choose", lambda runs, *_: None)  # what was probed stays
    text, as_bytes = Corpus(TEXT, BPE, "notes"), Corpus(TEXT)
    _, of_bytes = planned(CONFIG, [], as_bytes, 1.0, as_bytes)
    _, of_tokens = planned(CONFIG, [], text, 1.0, as_bytes)
    worth = len(TEXT) / len(BPE.encode(TEXT))
    assert asked == [(len(as_bytes), 1.0), (len(text), worth)]
    assert of_tokens.loss == pytest.approx(min(of_bytes.loss * worth**0.9, math.log(CONFIG.model.vocab_size)))
    assert "999 steps, 1 pass over" in capsys.readouterr().err
    assert "; 1 step instead of 999 to" in of_tokens.outcome(2.0, 1)
