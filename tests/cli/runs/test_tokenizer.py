"""`byhand tokenizer`: learn, encode, decode, inspect, convert."""

import json

import pytest

from byhand.tokenizers import forms
from cli import inside
from cli.process import error_line

TEXT = b"the cat sat on the mat; the cats sat <|end|> caf\xc3\xa9 \xff\n" * 30


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A text and a tokenizer learnt from it."""
    made = tmp_path_factory.mktemp("tokens")
    (made / "text").write_bytes(TEXT)
    done = inside.byhand(
        "tokenizer",
        "train",
        "text",
        "--encoding",
        "bytes",
        "--vocab-size",
        270,
        "--special",
        "<|end|>",
        "--out",
        "t.json",
        cwd=made,
    )
    assert done.returncode == 0, done.stderr
    assert b"t.json: 270 tokens learnt from text (" in done.stderr
    assert done.stdout == b""
    return made


def run(folder, *arguments, stdin=b""):
    done = inside.byhand("tokenizer", *arguments, cwd=folder, stdin=stdin)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_ids_and_back(folder):
    tokenizer = forms.read(folder / "t.json")
    ids = tokenizer.encode("the cat <|end|>")
    assert ids[-1] == 269
    assert run(folder, "encode", "t.json", "--text", "the cat <|end|>") == f"{' '.join(map(str, ids))}\n".encode()
    written = run(folder, "encode", "t.json", "--json", stdin=TEXT)
    assert json.loads(written) == tokenizer.encode(TEXT)
    assert run(folder, "decode", "t.json", stdin=written) == TEXT
    assert run(folder, "decode", "t.json", *ids) == b"the cat <|end|>"


def test_what_a_tokenizer_holds(folder):
    facts = json.loads(run(folder, "inspect", "t.json", "--json"))
    assert (facts["kind"], facts["tokens"], facts["split"], facts["merges"]) == ("bpe", 270, "gpt4", 13)
    assert facts["special"] == [[269, "<|end|>"]]
    assert [new for new, _ in facts["first merges"]] == list(range(256, 266))
    said = run(folder, "inspect", "t.json", "--text", "the mat").decode()
    assert "bytes per token" in said
    assert "' mat'" in said or "'mat'" in said or "' m'" in said
    assert "tokens           270" in run(folder, "inspect", "t.json").decode()


def test_other_forms_have_the_same_ids(folder):
    run(folder, "train", "text", "--encoding", "bytes", "--vocab-size", 268, "--split", "gpt2", "--out", "two.json")
    ids = run(folder, "encode", "two.json", stdin=TEXT)
    run(folder, "convert", "two.json", "--out", "two.tiktoken")
    run(folder, "convert", "two.json", "--out", "files")
    run(folder, "convert", "two.tiktoken", "--split", "gpt2", "--out", "again.json")
    assert run(folder, "encode", "two.tiktoken", "--split", "gpt2", stdin=TEXT) == ids
    for name in ("files", "again.json"):
        assert run(folder, "encode", name, stdin=TEXT) == ids


def test_help_and_mistakes(folder):
    (folder / "number.json").write_text("1")
    assert b"inspect" in run(folder, "--help")
    for arguments, said in {
        ("learn",): "there is no byhand tokenizer",
        (
            "train",
            "text",
            "--encoding",
            "bytes",
            "--vocab-size",
            9,
            "--out",
            "x.json",
        ): "vocab_size is 9, but must be from 256",
        ("train", "text", "--encoding", "bytes", "--vocab-size", 300, "--out", "x.txt"): "not a tokenizer's name",
        ("train", "nothing", "--vocab-size", 300, "--out", "x.json"): "there is no file or folder nothing",
        ("encode", "none.json", "--text", "a"): "there is no file or folder none.json",
        ("decode", "t.json", "x"): "the id 'x' is not an integer. Write it in digits.",
        ("decode", "t.json", "999999"): "no token with the id 999999. Use ids from 0 to 269.",
        ("convert", "t.json", "--out", "folder"): "GPT-2's pre-tokenizer, not gpt4's",
        ("inspect", "text"): "Use a tokenizer.json, ranks that end with .tiktoken, or a folder with vocab.json and",
        ("decode", "number.json", "1"): "it has no tokens. Use a tokenizer.json, ranks",
    }.items():
        assert said in error_line(inside.byhand("tokenizer", *arguments, cwd=folder)), arguments
    assert not (folder / "x.json").exists()
