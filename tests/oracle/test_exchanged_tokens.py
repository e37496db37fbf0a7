"""Exported tokenizers give the same ids in transformers and in llama.cpp, for every way to cut words."""

from __future__ import annotations

import json
import urllib.request
from dataclasses import replace
from pathlib import Path

import pytest

from byhand.config import TrainConfig
from byhand.interop import exchange
from byhand.runs.contents import Checkpoint
from byhand.tokenizers.bpe import BytePairTokenizer
from byhand.tokenizers.training import train
from interop.run_cases import GPT2, parameters
from oracle.nasty_texts import nasty_texts

pytestmark = pytest.mark.oracle
SPLITS = ("gpt2", "gpt4", "qwen2", "smollm")
TEXT = Path(__file__).resolve().parents[2] / "README.zh-CN.md"
COUNT = 300


def texts(special: bool) -> list[str]:
    found = nasty_texts(COUNT, 3, special)
    return [text for text in found if text and not any(0xD800 <= ord(sign) < 0xE000 for sign in text)]


def exported(split: str, goal: str, place: Path, whole: bool = False) -> tuple[BytePairTokenizer, Path]:
    words = train([TEXT.read_bytes()], 700, split, ("<|endoftext|>",))
    if whole:
        words = BytePairTokenizer(words.vocabulary, words.merges, split=split, special=words.special, whole=True)
    config = replace(GPT2, vocab_size=704)
    run = Checkpoint(TrainConfig(model=config), parameters(config), {}, {"step": 0}, tokenizer=words)
    return words, exchange.write(run, goal, place)[0]


@pytest.mark.parametrize("split", SPLITS)
def test_transformers(split, tmp_path):
    transformers = pytest.importorskip("transformers", reason="transformers is not installed: nothing is compared")
    words, _ = exported(split, "hf", tmp_path / "out")
    theirs = transformers.AutoTokenizer.from_pretrained(tmp_path / "out")
    assert theirs.eos_token_id == words.special["<|endoftext|>"]
    for text in texts(special=True):
        assert theirs(text)["input_ids"] == words.encode(text), repr(text)
    assert exchange.read(tmp_path / "out").tokenizer().ids_digest == words.digest


@pytest.mark.parametrize("split", [*SPLITS, "gpt4 whole"])
def test_llama_cpp(split, tmp_path):
    llama_cpp = pytest.importorskip("xllamacpp", reason="xllamacpp is not installed, so llama.cpp is not asked")
    name, _, whole = split.partition(" ")
    words, path = exported(name, "gguf", tmp_path / "out", bool(whole))
    assert exchange.read(path).tokenizer().ids_digest == words.digest
    p = llama_cpp.CommonParams()
    p.model.path, p.n_ctx, p.n_parallel, p.warmup = str(path), 32, 1, False
    server = llama_cpp.Server(p)
    differing = []
    for text in texts(special=False):
        asked = json.dumps({"content": text, "add_special": False, "parse_special": False}).encode()
        headers = {"Content-Type": "application/json"}
        request = urllib.request.Request(f"{server.listening_address}/tokenize", asked, headers)
        with urllib.request.urlopen(request) as answer:
            found = json.load(answer)["tokens"]
        if found != words.encode(text):
            differing.append(text)
    assert not differing, f"{len(differing)}: {differing[:5]!r}"
