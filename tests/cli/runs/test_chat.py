"""Conversations at the command line: a model learns to answer, is asked, resumes and says what it is."""

import json
import os
import re
import shutil
import signal
import subprocess
import sys
from contextlib import contextmanager
from dataclasses import replace

import numpy as np
import pytest

import byhand as bh
from byhand.cli.runs.texts import EncodedPrompt
from byhand.conversations.formats import Chat
from byhand.conversations.messages import Message, conversation
from byhand.errors import DataError
from byhand.runs import checkpoint, metrics
from byhand.tokenizers.conventions import in_words
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


def imported(run, seq_len, **conventions):
    """Write a model with initial weights as if it was imported, of a tokenizer with these conventions."""
    found = tokenizer(CHATML)
    found = found.using(replace(found.conventions, **conventions))
    model = bh.ModelConfig(vocab_size=found.vocab_size, seq_len=seq_len, d_model=32, n_layers=1, n_heads=2)
    arrays = {name: p.data for name, p in bh.TinyGPT(model, seed=1).parameters().items()}
    state = {"step": 0, "text": {}, "imported": {}}
    checkpoint.save(
        run, checkpoint.Checkpoint(bh.TrainConfig(model=model, steps=1), arrays, {}, state, tokenizer=found)
    )
    (run / "run.json").write_text("{}")


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    """A folder with conversations, and a run that began with an imported-like model of a chat template."""
    pytest.importorskip("jinja2")
    place = tmp_path_factory.mktemp("chat")
    (place / "talks.jsonl").write_text("".join(json.dumps(each) + "\n" for each in lines()))
    imported(place / "base", 48)
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


def test_every_answer_of_a_conversation_has_random_numbers_of_its_own(place, monkeypatch):
    """A second answer that is drawn with the first one's repeats it. Those that the context lost count too."""
    seeds, texts = [], EncodedPrompt.texts
    monkeypatch.setattr(
        EncodedPrompt, "texts", lambda self, *how: seeds.append(self.prompt.drawing.seed) or texts(self, *how)
    )
    _, said = asked(place, "base", *"abcdefgh", flags=("--temperature", 1, "--seed", 5, "--max-new-tokens", 3))
    assert "the oldest questions and answers are left out" in said
    assert seeds == list(range(5, 13))


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
    why = "the context of 48 tokens is full, 4 of them kept for an answer"
    assert said.count(f"{why}: the oldest questions and answers are left out now, down to half of it") == 1


def test_a_question_reads_only_what_is_new_until_the_context_is_full(place):
    """Then half of the context is read again, and later questions read only new tokens."""
    imported(place / "long", 200)
    _, said = asked(place, "long", *["how do you do?"] * 20, flags=("--max-new-tokens", 8, "--stats"))
    found = [tuple(map(int, each)) for each in re.findall(r"read (\d+) tokens? of the prompt, reused (\d+)", said)]
    begins = [i for i in range(1, len(found)) if sum(found[i]) <= sum(found[i - 1])]
    assert len(found) == 20
    assert 2 <= len(begins) < 8
    for i, (read, reused) in enumerate(found[1:], 1):
        assert read + reused <= (100 if i in begins else 192)
        assert i in begins or reused >= sum(found[i - 1])


def test_a_pipe_knows_reset_and_exit_and_every_other_line_is_a_question(place):
    lines = "/help", "//x", "/reset", "ab \\", "/exit", "ab?"
    _, said = asked(place, "tuned", *lines, flags=("--max-new-tokens", 2, "--stats"))
    assert said.count(" of the prompt, reused ") == 3
    assert "\nthe conversation starts over\n" in said


def test_the_models_own_sampling_is_used_unless_flags_say_more(place):
    suggested = {"temperature": 0.0, "repetition_penalty": 1.2}
    imported(place / "suggests", 48, sampling=suggested)
    few, penalty = ("--max-new-tokens", 5, "--runtime", "numpy"), ("--repetition-penalty", 1.2)

    def said(command, *flags, run="suggests"):
        done = inside.byhand(command, run, *few, *flags, cwd=place, stdin=b"ab gh?\n")
        assert done.returncode == 0, done.stderr
        return done.stdout.decode(), done.stderr.decode()

    wanted, silent = said("chat", "--temperature", 0, *penalty, run="base")
    assert silent == said("chat", "--temperature", 0.5, *penalty)[1] == ""
    assert said("chat") == (wanted, f"sampling: {in_words(suggested)}, as the model suggests\n")
    assert said("chat", "--temperature", 0, "--threads", 1) == (
        wanted, "sampling: repetition-penalty 1.2, as the model suggests\n",
    )  # fmt: skip
    assert bh.load(place / "suggests").chat("ab gh?", runtime="numpy", max_new_tokens=5) == wanted[:-1]
    assert said("sample", "--json")[0] == said("sample", "--json", "--temperature", 0, *penalty, run="base")[0]


def test_an_answer_keeps_a_quarter_of_the_context_free_at_most(place):
    """A question of 25 tokens fits into a context of 48, although answers may have 300."""
    assert "left out" not in asked(place, "tuned", "ab gh?")[1]


def test_a_message_that_fills_the_context_is_refused_and_the_conversation_goes_on(place):
    model = bh.load(place / "tuned")
    most = 48 - len(Chat(model.tokenizer).prompt([Message("user", "")]))  # of a byte each, and no room for an answer
    lines = b"ab gh?\n" + b"z" * most + b"\nab gh?\n"
    done = inside.byhand("chat", "tuned", "--temperature", 0, "--runtime", "numpy", cwd=place, stdin=lines)
    why = "the last message needs 48 tokens in the chat format, but the context is 48 tokens"
    assert f"error: {why} and must hold an answer too. Shorten the message." in done.stderr.decode().splitlines()
    assert (done.returncode, len(done.stdout.splitlines())) == (2, 2)
    few = {"runtime": "numpy", "max_new_tokens": 1}
    assert isinstance(model.chat("z" * (most - 1), **few), str)
    turns = [{"role": role, "content": text} for role, text in (("user", "a"), ("assistant", "b"))] * 9
    with pytest.raises(DataError, match=r"needs 60 tokens .* Shorten the message\.$"):
        model.chat([*turns, {"role": "user", "content": "z" * (most + 12)}], **few)
    with pytest.raises(DataError, match="Shorten the message or the system prompt"):
        model.chat([{"role": "system", "content": "z" * 99}, turns[0]], **few)


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


@contextmanager
def terminal(place, *flags, term="dumb"):
    """A chat in a terminal: the process, what writes to it, and what reads from it until some words come."""
    ours, theirs = os.openpty()
    command = [sys.executable, "-m", "byhand", "chat", "base", "--runtime", "numpy", *flags]
    process = subprocess.Popen(
        command, cwd=place, stdin=theirs, stdout=theirs, stderr=theirs, env=environment(TERM=term), close_fds=True
    )
    os.close(theirs)
    read = bytearray()

    def until(words, least=0):
        while words not in read or len(read) < least:
            read.extend(os.read(ours, 4096))
        del read[: read.index(words) + len(words)]

    try:
        until(b"> ")
        yield process, lambda words: os.write(ours, words), until
        os.write(ours, b"/exit\n")
        assert process.wait(PATIENCE) == 0
    finally:
        process.kill()
        process.wait()
        os.close(ours)


TERMINAL = pytest.mark.skipif(not hasattr(os, "openpty"), reason="there are no pseudo-terminals")


@TERMINAL
def test_ctrl_c_stops_an_answer_and_another_one_says_how_to_end(place):
    """The answer never ends by itself, and the conversation goes on after it was stopped."""
    with terminal(place, "--max-new-tokens", "1000000") as (process, write, until):
        write(b"hello\n")
        until(b"hello\r\n")
        until(b"", least=200)
        process.send_signal(signal.SIGINT)
        until(b"\n> ")
        process.send_signal(signal.SIGINT)
        until(b"ends the conversation")


@TERMINAL
def test_commands_and_questions_of_several_lines(place):
    (place / "there.jsonl").write_text("x")
    asked = {b"one\n": "one", b'"""\na\n/b"""\n': "a\n/b", b"c \\\nd\n": "c \nd", b"//e\n": "/e"}
    with terminal(place, "--max-new-tokens", "4") as (_, write, until):
        for line, answer in (
            (b"/retry", b"there is no answer yet"), (b"/help", b"several lines"),
            (b"/hlep me", b"there is no command '/hlep'"), (b"/system", b"there is no system prompt"),
            (b"/system be", b""), (b"/system", b"\nbe"), (b"/system -", b""),
            (b"/system", b"there is no system prompt"), (b"/system be", b""),
            (b"/save x.jsonl", b"nothing to save yet"),
        ):  # fmt: skip
            write(line + b"\n")
            until(answer)
            until(b"> ")
        for lines in asked:
            write(lines)
            until(b"> ")
        for line, answer in (
            (b"/retry", b""), (b"/save there.jsonl", b"there.jsonl exists already"),
            (b"/save said.jsonl", b"saved in said.jsonl"), (b"/reset", b"starts over"),
            (b"/retry", b"there is no answer yet"),
        ):  # fmt: skip
            write(line + b"\n")
            until(answer)
            until(b"> ")
    (line,) = (place / "said.jsonl").read_text(encoding="utf-8").splitlines()
    said = conversation(json.loads(line), "said.jsonl")
    assert [message.role for message in said] == ["system", *["user", "assistant"] * 4]
    assert [message.content for message in said if message.role != "assistant"] == ["be", *asked.values()]


@TERMINAL
def test_pasted_lines_are_one_question(place):
    readline = pytest.importorskip("readline", reason="this Python has no readline")
    if "libedit" in (readline.__doc__ or ""):
        pytest.skip("libedit does not tell what is pasted")
    with terminal(place, "--max-new-tokens", "4", term="xterm") as (_, write, until):
        write(b"\x1b[200~/a\rb\x1b[201~\n")
        until(b"\n\x1b[?2004h> ")
        write(b"/save pasted.jsonl\n")
        until(b"saved in")
    (line,) = (place / "pasted.jsonl").read_text(encoding="utf-8").splitlines()
    assert json.loads(line)["messages"][0] == {"role": "user", "content": "/a\nb"}
