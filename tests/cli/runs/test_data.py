"""Texts as people have them: several files and forms, a run that resumes without them, one-line errors."""

import gzip
import json

import numpy as np
import pytest

from byhand.corpus.documents import Reading
from byhand.runs import checkpoint, metrics
from cli import inside
from cli.process import error_line

SMALL = ("--preset", "tiny", "--seq-len", 16, "--d-model", 16, "--eval-windows", 4, "--threads", 1)


@pytest.fixture
def sources(tmp_path):
    """A folder with text, JSON lines, a picture and a compressed file, and a file in an old encoding."""
    folder = tmp_path / "texts"
    folder.mkdir()
    (folder / "a.txt").write_text("The cat sat on the mat. " * 20)
    (folder / "b.jsonl").write_text(
        "".join(json.dumps({"text": f"Story {i} of a hat. " * 3}) + "\n" for i in range(90))
    )
    (folder / "c.md.gz").write_bytes(gzip.compress(b"# Notes\n" * 9))
    (folder / "d.png").write_bytes(b"\x89PNG\r\n\x1a\n\0\0")
    (tmp_path / "old.txt").write_bytes("Über den Hut. ".encode("cp1252") * 30)
    return tmp_path


def weights(run):
    return {name: p.data.copy() for name, p in checkpoint.load(run).model().parameters().items()}


def test_a_run_on_many_documents_goes_on_without_their_files(sources):
    """Validation takes whole documents, and a resumed run the same ones; bit for bit."""
    train = ("train", *SMALL, "--data", "texts", "--steps", 6)
    done = inside.byhand(*train, "--out", "whole", cwd=sources)
    assert done.returncode == 0, done.stderr
    assert b"skipped, not text: texts/d.png" in done.stderr
    assert b"texts: 92 documents; validation takes " in done.stderr
    assert inside.byhand(*train, "--save-interval", 3, "--out", "parts", cwd=sources).returncode == 0
    for step in (sources / "parts").glob("step-*6"):
        step.rename(sources / "last")
    (sources / "texts").rename(sources / "elsewhere")
    again = inside.byhand("train", "--resume", "parts", cwd=sources)
    assert again.returncode == 0, again.stderr
    whole, parts = weights(sources / "whole"), weights(sources / "parts")
    assert all(np.array_equal(whole[name], parts[name]) for name in whole)
    one, other = (metrics.read(sources / run)[-1] for run in ("whole", "parts"))
    assert one["val/loss"] == other["val/loss"]
    state = checkpoint.load(sources / "parts").state["text"]
    assert state["path"] == "corpus.bin"
    assert 80 < state["training_documents"] < 92


def test_files_of_several_names_and_a_text_for_validation(sources):
    """As flags and in TOML; the checkpoint says what was named."""
    flags = ("--data", "texts/a.txt", "old.txt", "--val-data", "texts/b.jsonl", "--encoding", "cp1252")
    done = inside.byhand("train", *SMALL, *flags, "--steps", 2, "--out", "one", cwd=sources)
    assert done.returncode == 0, done.stderr
    assert b"texts/a.txt, old.txt: 92 documents; validation takes 90 of them" in done.stderr
    (sources / "c.toml").write_text(
        'data = ["texts/a.txt", "old.txt"]\nval_data = "texts/b.jsonl"\nencoding = "cp1252"\nsteps = 2'
    )
    assert inside.byhand("train", *SMALL, "--config", "c.toml", "--out", "two", cwd=sources).returncode == 0
    one, two = checkpoint.load(sources / "one"), checkpoint.load(sources / "two")
    assert one.config == two.config
    assert one.state["text"] == two.state["text"]
    assert one.config.data.sources == ("texts/a.txt", "old.txt")
    assert (sources / "one" / "corpus.bin").read_bytes().startswith(b"The cat sat")


def test_lines_of_json_through_a_pipe(sources):
    given = (sources / "texts" / "b.jsonl").read_bytes()
    train = ("train", *SMALL, "--data", "-", "--steps", 2)
    done = inside.byhand(*train, "--text-field", "text", "--out", "run", cwd=sources, stdin=given)
    assert done.returncode == 0, done.stderr
    assert b"standard input: 90 documents" in done.stderr
    line = error_line(inside.byhand(*train, "--text-field", "body", "--out", "no", cwd=sources, stdin=given))
    assert "standard input:1 has no field 'body' but 'text'" in line


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        (("--data",), "--data names no file"),
        (("--data", "texts/d.png"), "texts/d.png is not text"),
        (("--data", *["texts/a.txt"] * 1000), "more than any command takes. For many files name their folder"),
        (("--data", "texts/*.doc"), "no file matches texts/*.doc"),
        (("--data", "texts/a.txt", "missing"), "there is no file or folder missing"),
        (("--data", "texts/a.txt", "-"), "Name it alone"),
        (("--data", "texts/a.txt", "--encoding", "klingon"), "encoding is"),
        (("--data", "texts/a.txt", "--encoding", "base64"), "encoding is"),
        (("--data", "texts/b.jsonl", "--text-field", "body"), "b.jsonl:1 has no field 'body' but 'text'"),
        (("--data", "texts/a.txt", "--val-data", "missing"), "there is no file or folder missing"),
    ],
)
def test_mistakes(sources, flags, message):
    line = error_line(inside.byhand("train", *SMALL, *flags, "--steps", 1, "--out", "run", cwd=sources))
    assert message in line
    assert not (sources / "run").exists()


def test_other_commands_read_the_same_forms(sources):
    learn = ("tokenizer", "train", "texts", "--vocab-size", 280, "--special", "<|endoftext|>", "--out", "t.json")
    assert b"280 tokens learnt from texts" in inside.byhand(*learn, cwd=sources).stderr
    train = ("train", *SMALL, "--data", "texts", "--tokenizer", "t.json", "--steps", 2, "--out", "run")
    assert inside.byhand(*train, cwd=sources).returncode == 0
    shown = inside.byhand("eval", "run", "--data", "old.txt", "--encoding", "cp1252", "--json", cwd=sources)
    size = len((sources / "old.txt").read_bytes().decode("cp1252").encode())
    assert 0 < size - json.loads(shown.stdout)["bytes"] < 8, "all but the first token"
    assert Reading().plain(sources / "texts" / "a.txt")


def test_a_text_ends_where_the_model_ends_a_document(sources):
    """Learnt from documents of one letter each, whose end is soon the likeliest token."""
    (sources / "short.jsonl").write_text('{"text": "ab"}\n' * 400)
    train = ("train", *SMALL, "--lr", 0.02, "--warmup-steps", 5, "--steps", 150, "--data", "short.jsonl")
    assert inside.byhand(*train, "--out", "run", cwd=sources).returncode == 0
    sample = ("sample", "run", "--prompt", "a", "--temperature", 0, "--max-new-tokens", 7)

    def text(*flags):
        return json.loads(inside.byhand(*sample, "--json", *flags, cwd=sources).stdout)["text"]

    assert text() == "b"
    assert text("--ignore-eos") == "b\0ab\0ab"
    done = inside.byhand("sample", "run", "--prompt", "ab", "--temperature", 0, cwd=sources)
    assert (done.stdout, done.returncode) == (b"ab\n", 0)
    assert b"the model ended the text at its first token; --ignore-eos lets it go on" in done.stderr
    assert b"first token" not in inside.byhand(*sample, cwd=sources).stderr
    (sources / "p.jsonl").write_text('{"prompt": "ab"}\n{"prompt": "a", "max_new_tokens": 4}\n')
    lines = inside.byhand(
        "sample", "run", "--prompts", "p.jsonl", "--temperature", 0, cwd=sources
    ).stdout.splitlines()
    assert [json.loads(line)["text"] for line in lines] == ["", "b"]
