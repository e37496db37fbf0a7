"""Exported tokenizers give the same ids in transformers and in llama.cpp, for every way to cut words."""

from __future__ import annotations

import json
import random
import urllib.request
from dataclasses import replace
from pathlib import Path
from unicodedata import category

import pytest

import sentencepiece_cases as cases
from byhand.config import TrainConfig
from byhand.interop import exchange
from byhand.runs.contents import Checkpoint
from byhand.tokenizers.bpe import BytePairTokenizer
from byhand.tokenizers.hugging_face import as_hugging_face, of_hugging_face
from byhand.tokenizers.patterns import NAMED
from byhand.tokenizers.sentencepiece import SentencePieceTokenizer
from byhand.tokenizers.tokenizer import Tokenizer
from byhand.tokenizers.training import train
from interop.run_cases import GPT2, LLAMA, parameters
from oracle.nasty_texts import nasty_texts

pytestmark = pytest.mark.oracle
SPLITS = ("gpt2", "gpt4", "qwen2", "smollm")
TEXT = Path(__file__).resolve().parents[2] / "README.zh-CN.md"
COUNT = 300


def texts(special: bool) -> list[str]:
    found = nasty_texts(COUNT, 3, special)
    return [text for text in found if text and not any(0xD800 <= ord(sign) < 0xE000 for sign in text)]


def exported(split: str, goal: str, place: Path, whole: bool = False) -> tuple[BytePairTokenizer, Path]:
    words = train([TEXT.read_bytes()], 700, "gpt2" if split in NAMED else split, ("<|endoftext|>",))
    if whole or split in NAMED:
        words = BytePairTokenizer(words.vocabulary, words.merges, split=split, special=words.special, whole=whole)
    config = replace(GPT2, vocab_size=704)
    run = Checkpoint(TrainConfig(model=config), parameters(config), {}, {"step": 0}, tokenizer=words)
    return words, exchange.write(run, goal, place)[0]


@pytest.mark.parametrize("split", [*SPLITS, *NAMED])
def test_transformers(split, tmp_path):
    transformers = pytest.importorskip("transformers", reason="transformers is not installed: nothing is compared")
    words, _ = exported(split, "hf", tmp_path / "out")
    theirs = transformers.AutoTokenizer.from_pretrained(tmp_path / "out")
    assert theirs.eos_token_id == words.special["<|endoftext|>"]
    for text in known(texts(special=True), split):
        assert theirs(text)["input_ids"] == words.encode(text), repr(text)
    assert exchange.read(tmp_path / "out").tokenizer().ids_digest == words.digest


def known(texts: list[str], split: str, ascii_only: bool = False) -> list[str]:
    """Return texts, for other patterns without characters that some Unicode may not know."""
    if split not in NAMED:
        return texts
    return ["".join(c for c in text if c.isascii() or not (ascii_only or category(c) == "Cn")) for text in texts]


@pytest.mark.parametrize("split", [*SPLITS, "gpt4 whole", *(n + " whole" * (n == "tekken") for n in NAMED)])
def test_llama_cpp(split, tmp_path):
    """Its patterns of gpt-4o and tekken know capitals of ASCII alone."""
    llama_cpp = pytest.importorskip("xllamacpp", reason="xllamacpp is not installed, so llama.cpp is not asked")
    name, _, whole = split.partition(" ")
    words, path = exported(name, "gguf", tmp_path / "out", bool(whole))
    assert exchange.read(path).tokenizer().ids_digest == words.digest
    p = llama_cpp.CommonParams()
    p.model.path, p.n_ctx, p.n_parallel, p.warmup = str(path), 32, 1, False
    asked = known(texts(special=False), name, name in ("gpt-4o", "tekken"))
    differing = differing_in_llama_cpp(llama_cpp.Server(p), words, asked)
    assert not differing, f"{len(differing)}: {differing[:5]!r}"


def differing_in_llama_cpp(server, words: Tokenizer, texts: list[str]) -> list[str]:
    """Return the texts that llama.cpp encodes otherwise."""
    differing = []
    for text in texts:
        asked = json.dumps({"content": text, "add_special": False, "parse_special": False}).encode()
        headers = {"Content-Type": "application/json"}
        request = urllib.request.Request(f"{server.listening_address}/tokenize", asked, headers)
        with urllib.request.urlopen(request) as answer:
            found = json.load(answer)["tokens"]
        if found != words.encode(text):
            differing.append(text)
    return differing


def pieces_exported(goal: str, prefix: str, place: Path) -> tuple[SentencePieceTokenizer, Path]:
    words = of_hugging_face(cases.tokenizer_json(prefix))
    config = replace(LLAMA, vocab_size=words.vocab_size)
    run = Checkpoint(TrainConfig(model=config), parameters(config), {}, {"step": 0}, tokenizer=words)
    return words, exchange.write(run, goal, place)[0]


def spaced(special: bool) -> list[str]:
    """Return nasty texts, and texts of the words that the pieces were learnt from."""
    chance = random.Random(4)
    parts = ["the", "hello", " ", "  ", "▁", "a", "aa", "中文", "0x1F", "\n", *(("<s>", "</s>") if special else ())]
    return texts(False) + ["".join(chance.choices(parts, k=chance.randint(1, 15))) for _ in range(COUNT)]


@pytest.mark.parametrize("prefix", ["each", "words", "first", "none"])
def test_transformers_of_pieces(prefix, tmp_path):
    transformers = pytest.importorskip("transformers", reason="transformers is not installed: nothing is compared")
    words, path = pieces_exported("hf", prefix, tmp_path / "out")
    theirs = transformers.AutoTokenizer.from_pretrained(path.parent)
    for text in spaced(special=True):
        assert theirs(text)["input_ids"] == words.prompt(text), repr(text)
        if "<" not in text:
            ids = words.encode(text)
            assert theirs.decode(ids, clean_up_tokenization_spaces=False) == words.decode(ids).decode()
    assert exchange.read(path.parent).tokenizer().ids_digest == words.ids_digest


def test_added_tokens_that_are_text():
    """Runs of spaces and of newlines, and tags: the ids and the text are those of `tokenizers`."""
    # not `tokenizers`, which may be a folder of these tests
    pytest.importorskip("tokenizers.models", reason="tokenizers is not installed: nothing is compared")
    import tokenizers

    values = cases.with_text_tokens()
    words, theirs = of_hugging_face(values), tokenizers.Tokenizer.from_str(json.dumps(values))
    ours = tokenizers.Tokenizer.from_str(as_hugging_face(words).decode())
    for text in [*spaced(special=False), "the    cat", "a▁▁▁▁b▁<b>▁", " <b> ▁<b>▁  \n\n\n", "▁▁▁▁▁▁▁"]:
        ids = theirs.encode(text, add_special_tokens=False).ids
        assert words.encode(text) == ours.encode(text, add_special_tokens=False).ids == ids, repr(text)
        assert words.decode(ids).decode() == theirs.decode(ids, skip_special_tokens=False), repr(text)


@pytest.mark.parametrize("prefix", ["each", "none"])
def test_llama_cpp_of_pieces(prefix, tmp_path):
    llama_cpp = pytest.importorskip("xllamacpp", reason="xllamacpp is not installed, so llama.cpp is not asked")
    words, path = pieces_exported("gguf", prefix, tmp_path / "out")
    found = exchange.read(path).tokenizer()
    assert found.ids_digest == words.ids_digest
    assert found.conventions.before == words.conventions.before == (1,)
    p = llama_cpp.CommonParams()
    p.model.path, p.n_ctx, p.n_parallel, p.warmup = str(path), 32, 1, False
    differing = differing_in_llama_cpp(llama_cpp.Server(p), words, spaced(special=False))
    assert not differing, f"{len(differing)}: {differing[:5]!r}"
