"""Conversations at the command line: a model learns to answer, is asked, resumes and says what it is."""

import json
import os
import shutil
import signal
import subprocess
import sys

import numpy as np
import pytest

import byhand as bh
from byhand.conversations.formats import Chat
from byhand.conversations.messages import Message
from byhand.errors import DataError
from byhand.runs import checkpoint, metrics
from cli import inside
from cli.process import PATIENCE, environment, error_line
from conversations.templates import CHATML, tokenizer

WORDS = ["ab", "cd", "ef", "gh", "ij", "kl", "mn", "op"]
SMALL = (
    "--preset", "tiny", "--seq-len", 48, "--d-model", 32, "--batch-size", 8, "--threads", 1, "--runtime", "numpy",
    "--warmup-steps", 10, "--eval-windows", 20,
)  # fmt: skip


def lines(count=160):
    """Questions for one of a few words, answered by the word after it."""
    for i in range(count):
        word, answer = WORDS[i % 8], WORDS[(i * 3 + i // 8) % 8]
        said = f"{word} {answer}?"
        yield {"messages": [{"role": "user", "content": said}, {"role": "assistant", "content": answer}]}


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    """A folder with conversations, and a run that began with an imported-like model of a chat template."""
    pytest.importorskip("jinja2")
    place = tmp_path_factory.mktemp("chat")
    (place / "talks.jsonl").write_text("".join(json.dumps(each) + "\n" for each in lines()))
    found = tokenizer(CHATML)
    config = bh.TrainConfig(
        model=bh.ModelConfig(vocab_size=found.vocab_size, seq_len=48, d_model=32, n_layers=1, n_heads=2), steps=1
    )
    arrays = {name: p.data for name, p in bh.TinyGPT(config.model, seed=1).parameters().items()}
    made = checkpoint.Checkpoint(config, arrays, {}, {"step": 0, "text": {}, "imported": {}}, tokenizer=found)
    checkpoint.save(place / "base", made)
    (place / "base/run.json").write_text("{}")
    tuning = (
        "train",
        "--init-from",
        "base",
        "--chat",
        "talks.jsonl",
        "--steps",
        140,
        "--lr",
        "1e-2",
        "--batch-size",
        8,
    )
    done = inside.byhand(*tuning, "--runtime", "numpy", "--warmup-steps", 10, "--out", "tuned", cwd=place)
    assert done.returncode == 0, done.stderr
    assert done.stdout.decode().rstrip().endswith("Try: byhand chat tuned")
    return place


def asked(place, run, *questions, flags=()):
    stdin = "".join(f"{question}\n" for question in questions).encode()
    done = inside.byhand("chat", run, "--temperature", 0, "--runtime", "numpy", *flags, cwd=place, stdin=stdin)
    assert done.returncode == 0, done.stderr
    return done.stdout.decode().splitlines(), done.stderr.decode()


def test_a_tuned_model_answers_and_the_one_before_does_not(place):
    questions = [f"{word} {WORDS[(5 * i + 2) % 8]}?" for i, word in enumerate(WORDS)]
    wanted = [question.split()[1][:-1] for question in questions]
    before, _ = asked(
        place, "base", *(q for question in questions for q in (question, "/reset")), flags=("--max-new-tokens", 5)
    )
    after, _ = asked(place, "tuned", *(q for question in questions for q in (question, "/reset")))
    assert sum(a == b for a, b in zip(after, wanted, strict=True)) >= 6
    assert before[:8] != after
    losses = [row["train/loss"] for row in metrics.read(place / "tuned")]
    assert np.mean(losses[-20:]) < 0.2 * np.mean(losses[:5])


def test_eval_and_info_say_the_answers_loss_and_the_format(place):
    found = [
        json.loads(inside.byhand("eval", run, "--chat", "talks.jsonl", "--json", cwd=place).stdout)
        for run in ("base", "tuned")
    ]
    assert found[1]["loss"] < 0.2 * found[0]["loss"]
    assert found[1]["tokens"] == found[0]["tokens"] == 160 * 3  # two bytes and the end of the turn
    facts = json.loads(inside.byhand("info", "tuned", "--json", cwd=place).stdout)
    assert facts["conversations"] == {"format": "the model's"}
    assert facts["tokenizer"]["chat template"] == "default"
    assert facts["text"]["path"] == "corpus.bin"


def test_a_run_goes_on_bit_for_bit_without_its_file(place):
    train = ("train", *SMALL, "--chat", "gone.jsonl", "--steps", 6)
    (place / "gone.jsonl").write_text((place / "talks.jsonl").read_text())
    assert inside.byhand(*train, "--out", "whole", cwd=place).returncode == 0
    assert inside.byhand(*train, "--out", "halves", "--save-interval", 3, cwd=place).returncode == 0
    shutil.rmtree(place / "halves/step-00000006")
    (place / "halves/latest").unlink()
    (place / "gone.jsonl").unlink()
    assert inside.byhand("train", "--resume", "halves", cwd=place).returncode == 0
    one, other = (checkpoint.load(place / run) for run in ("whole", "halves"))
    assert one.step == other.step == 6
    assert other.state["chat"] == {"format": "plain"}
    for name, array in one.parameters.items():
        np.testing.assert_array_equal(array, other.parameters[name], err_msg=name)


def test_the_oldest_questions_are_left_out_once_said_and_the_system_stays(place):
    answers, said = asked(
        place, "tuned", *[f"{word} ab?" for word in WORDS], flags=("--system", "be", "--max-new-tokens", 4)
    )
    assert len(answers) == 8
    why = "the model reads 48 tokens, of which 4 are kept for an answer"
    assert said.count(f"{why}: the oldest questions and answers are left out now") == 1


def test_an_answer_keeps_a_quarter_of_the_context_free_at_most(place):
    """A question of 25 tokens fits into a context of 48, although answers may have 300."""
    assert "left out" not in asked(place, "tuned", "ab gh?")[1]


def test_a_loaded_model_answers_messages(place):
    model = bh.load(place / "tuned")
    question = {"role": "user", "content": "ab gh?"}
    answers, _ = asked(place, "tuned", "ab gh?")
    assert model.chat([question], temperature=0.0, runtime="numpy") == answers[0]
    assert model.chat("ab gh?", temperature=0.0, runtime="numpy") == answers[0]
    chat = Chat(model.tokenizer)
    assert model.tokenizer.decode(chat.prompt([Message(**question)])).endswith(b"<|im_start|>assistant\n")
    with pytest.raises(DataError, match="a message is from 'bot'"):
        model.chat([{"role": "bot", "content": "x"}])


def test_the_next_question_reads_only_what_is_new_until_the_weights_change(place):
    model, talk = bh.load(place / "tuned"), [Message("user", "a")]
    chat = Chat(model.tokenizer)

    def answer(model):
        return model.chat([m._asdict() for m in talk], runtime="numpy", temperature=0.0, max_new_tokens=1)

    def read():
        """Answer the talk; return the answer, and how many positions were read for it."""
        before = sum(engine.decoder.filled for engine in model._engines.values())
        return answer(model), sum(engine.decoder.filled for engine in model._engines.values()) - before

    first, whole = read()
    assert whole == len(chat.prompt(talk))
    talk += [Message("assistant", first), Message("user", "b")]
    again, new = read()
    assert again == answer(bh.load(place / "tuned"))
    assert 0 < new <= len(chat.prompt(talk)) - whole
    model.model.parameters()["wte"].data *= 1.5
    assert read()[1] == len(chat.prompt(talk))


@pytest.mark.parametrize(
    ("flags", "words"),
    [
        (("train", "--chat", "talks.jsonl", "--data", "x"), "--data changes nothing with --chat"),
        (("train", "--chat", "talks.jsonl", "--minutes", 1), "--minutes plans runs on texts"),
        (("train", "--chat", "missing.jsonl"), "there is no file or folder missing.jsonl"),
        (
            ("eval", "tuned", "--chat", "talks.jsonl", "--data", "x"),
            "--data and --chat ask for different figures. Give one of them.",
        ),
        (("eval", "tuned", "--chat", "talks.jsonl", "--stride", 3), "--stride changes nothing with --chat"),
        (("chat", "missing"), "there is no run missing"),
        (("chat", "tuned", "--max-new-tokens", -1), "--max-new-tokens is -1"),
    ],
)
def test_wrong_input_is_one_line(place, flags, words):
    assert words in error_line(inside.byhand(*flags, cwd=place))


@pytest.mark.skipif(not hasattr(os, "openpty"), reason="there are no pseudo-terminals")
def test_ctrl_c_stops_an_answer_and_ctrl_d_ends(place):
    """In a terminal: the answer never ends by itself, and the conversation goes on after it was stopped."""
    ours, theirs = os.openpty()
    command = [sys.executable, "-m", "byhand", "chat", "base", "--runtime", "numpy", "--max-new-tokens", "1000000"]
    process = subprocess.Popen(
        command, cwd=place, stdin=theirs, stdout=theirs, stderr=theirs, env=environment(TERM="dumb"), close_fds=True
    )
    os.close(theirs)
    read = bytearray()

    def until(words):
        while words not in read:
            read.extend(os.read(ours, 4096))
        del read[: read.index(words) + len(words)]

    try:
        until(b"> ")
        os.write(ours, b"hello\n")
        until(b"hello\r\n")
        until(b"")
        while len(read) < 200:
            read.extend(os.read(ours, 4096))
        process.send_signal(signal.SIGINT)
        until(b"\n> ")
        process.send_signal(signal.SIGINT)
        until(b"ends the conversation")
        os.write(ours, b"/exit\n")
        assert process.wait(PATIENCE) == 0
    finally:
        process.kill()
        process.wait()
        os.close(ours)
