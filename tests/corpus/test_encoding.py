"""A text is encoded once for a tokenizer; a damaged cache is never trusted."""

import json
import os
import re
import sys

import numpy as np
import pytest

from byhand.corpus import text_file
from byhand.corpus.dataset import Corpus
from byhand.corpus.encoding import corpus_of
from byhand.corpus.texts import Validation, on_disk, open_text
from byhand.errors import DataError
from byhand.tokenizers import compiled
from byhand.tokenizers.bpe import BytePairTokenizer
from byhand.tokenizers.byte import BYTES, ByteTokenizer
from byhand.tokenizers.conventions import Conventions
from byhand.tokenizers.hugging_face import of_hugging_face
from byhand.tokenizers.training import train
from sentencepiece_cases import tokenizer_json
from toy_tokenizers import PairTokenizer, byte_pairs

TEXT = b"hello the other house, all those aaaa " * 50
BPE = byte_pairs()
posix = pytest.mark.skipif(sys.platform == "win32", reason="needs POSIX permissions")


@pytest.fixture(params=["kept in memory", "read in parts"], autouse=True)
def kept(request, monkeypatch):
    if request.param == "read in parts":
        monkeypatch.setattr(text_file, "IN_MEMORY", 0)


@pytest.fixture
def cache(tmp_path, monkeypatch):
    compiled.available()  # loads the kernels: they need not be compiled into this cache
    monkeypatch.setenv("BYHAND_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


@pytest.fixture
def text(tmp_path):
    (tmp_path / "text").write_bytes(TEXT)
    return on_disk(tmp_path / "text", "notes")


@pytest.fixture
def encoded(monkeypatch):
    """How often a text was encoded: a list that grows."""
    calls, encode = [], BPE.encode_blocks
    monkeypatch.setattr(BPE, "encode_blocks", lambda blocks: calls.append(1) or encode(blocks))
    return calls


def test_bytes_are_the_text_itself(text, cache):
    assert corpus_of(text).tokens is text.content
    assert corpus_of(text, ByteTokenizer()).tokens is text.content
    assert not cache.exists()


@pytest.mark.parametrize("small_blocks", [False, True])
def test_tokens_are_those_of_the_whole_text_and_kept(text, cache, encoded, monkeypatch, small_blocks):
    if small_blocks:
        monkeypatch.setattr("byhand.corpus.text_file.BLOCK", 7)
    first, second = corpus_of(text, BPE), corpus_of(text, BPE)
    assert len(encoded) == 1
    for corpus in (first, second):
        assert corpus.tokens[:].tolist() == BPE.encode(TEXT)
        assert corpus.count_bytes() == len(TEXT)
        assert corpus.count_bytes(3) == len(TEXT) - len(BPE.decode(BPE.encode(TEXT)[:3]))
        assert (corpus.name, corpus.unit, corpus.tokenizer) == ("notes", "token", BPE)


def test_batches_are_those_of_the_same_tokens_in_memory(text, cache):
    in_memory = Corpus(TEXT, BPE)
    for one, other in zip(corpus_of(text, BPE).split(0.1, 16), in_memory.split(0.1, 16), strict=True):
        for make in (lambda d: d.sample_batch(7, 16, np.random.default_rng(3)), lambda d: d.spread_windows(9, 16)):
            for a, b in zip(make(one), make(other), strict=True):
                assert (a.dtype, a.shape) == (b.dtype, b.shape)
                np.testing.assert_array_equal(a, b)


def test_another_text_or_tokenizer_is_another_file(text, cache, tmp_path):
    corpus_of(text, BPE)
    (tmp_path / "other").write_bytes(TEXT[2:])
    assert corpus_of(on_disk(tmp_path / "other", "other"), BPE).tokens[:].tolist() == BPE.encode(TEXT[2:])
    pairs = PairTokenizer(bytes(sorted({*TEXT})))
    assert corpus_of(text, pairs).tokens[:].tolist() == pairs.encode(TEXT)
    assert len(os.listdir(cache / "tokens")) == 3


def damages(content):
    for at in (0, len(content) // 2, len(content) - 90, len(content) - 50, len(content) - 1):
        yield content[:at] + bytes([content[at] ^ 1]) + content[at + 1 :]
    yield from (b"", content[:-1], content[:-2], content[2:], content[:96], content[-96:], content + content)


@pytest.mark.parametrize("which", range(12))
def test_what_is_damaged_is_encoded_anew(text, cache, encoded, which):
    corpus_of(text, BPE)
    (path,) = (cache / "tokens").iterdir()
    whole = path.read_bytes()
    path.write_bytes(list(damages(whole))[which])
    tokens = corpus_of(text, BPE).tokens[:].tolist()
    assert len(encoded) == 2
    assert tokens == BPE.encode(TEXT)
    assert path.read_bytes() == whole


def test_the_tokens_of_another_text_are_not_taken_for_its_own(text, cache, tmp_path):
    corpus_of(text, BPE)
    (path,) = (cache / "tokens").iterdir()
    (tmp_path / "other").write_bytes(TEXT.upper())
    corpus_of(on_disk(tmp_path / "other", "other"), BPE)
    (other,) = set((cache / "tokens").iterdir()) - {path}
    other.replace(path)
    assert corpus_of(text, BPE).tokens[:].tolist() == BPE.encode(TEXT)


@posix
@pytest.mark.parametrize("mode", [0o666, 0o620])
def test_what_others_may_have_written_is_not_read(text, cache, encoded, mode):
    corpus_of(text, BPE)
    (path,) = (cache / "tokens").iterdir()
    path.chmod(mode)
    tokens = corpus_of(text, BPE).tokens[:].tolist()
    assert len(encoded) == 2
    assert tokens == BPE.encode(TEXT)
    assert path.stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize("why", ["no home", "a file in the way"])
def test_without_a_cache_the_tokens_are_in_memory(text, cache, monkeypatch, why):
    if why == "no home":
        monkeypatch.setattr("byhand.corpus.encoding.cache_folder", lambda: None)
    else:
        cache.write_text("mine")
    corpus = corpus_of(text, BPE)
    assert corpus.tokens[:].tolist() == BPE.encode(TEXT)
    assert corpus.tokens.dtype == BPE.dtype


def test_tokens_that_change_while_in_use_are_not_read(text, cache):
    corpus = corpus_of(text, BPE)
    (path,) = (cache / "tokens").iterdir()
    path.write_bytes(b"other")
    with pytest.raises(DataError, match="changed while it was in use"):
        corpus.rows(np.array([0]), 4)


def test_a_text_that_changes_leaves_nothing(text, cache, tmp_path):
    (tmp_path / "text").write_bytes(TEXT + b"more")
    with pytest.raises(DataError, match="changed while it was in use"):
        corpus_of(text, BPE)
    assert not cache.exists()


def test_a_text_without_ids_is_an_error_and_leaves_nothing(text, cache):
    with pytest.raises(DataError, match="not made of pairs"):
        corpus_of(text, PairTokenizer(b"ab"))
    assert os.listdir(cache / "tokens") == []


def test_a_text_in_memory(cache, tmp_path):
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder" / "a.txt").write_bytes(TEXT)
    assert corpus_of(open_text(str(tmp_path / "folder")), BPE).tokens[:].tolist() == BPE.encode(TEXT)
    assert corpus_of(open_text(str(tmp_path / "folder"))).tokens[:].tobytes() == TEXT
    assert BYTES.encode(TEXT) == [*TEXT]


@pytest.mark.parametrize("ends", [(), ("<|other|>",), ("<|endoftext|>",)], ids=["no token", "another", "its own"])
def test_documents_end_with_one_token_each(tmp_path, cache, ends):
    tokenizer = train([b"the cat sat, the hat. " * 50], 280 + len(ends), "gpt2", ends)
    texts = ["the cat ", "  sat,", "!!", "the\n\n", "\n the hat"] * 40
    (tmp_path / "a.jsonl").write_text("\n".join(json.dumps({"text": text}) for text in texts))
    text = open_text(str(tmp_path / "a.jsonl"))
    ids = corpus_of(text, tokenizer).tokens[:].tolist()
    assert ids.count(tokenizer.end) == len(texts)
    its_own = "<|endoftext|>" in ends
    assert tokenizer.token_bytes[tokenizer.end] == (b"<|endoftext|>" if its_own else b"\0")
    assert tokenizer.decode(ids) == b"".join(text.encode() + tokenizer.end_text for text in texts)
    if its_own:
        assert ids == [token for text in texts for token in (*tokenizer.encode(text), tokenizer.end)]


def test_no_learnt_token_reaches_over_the_end_of_a_document():
    tokenizer = train([b"ab\0ab\0ab\0" * 100], 300, "gpt2", documents=True)
    assert not any(b"\0" in content and len(content) > 1 for content in tokenizer.token_bytes.values())


def test_validation_begins_behind_documents_that_hold_the_text_of_their_end(tmp_path, cache, monkeypatch):
    """Some corpora are files of stories with <|endoftext|> between them."""
    tokenizer = train([b"the cat sat, the hat. " * 50], 281, "gpt2", ("<|endoftext|>",))
    (tmp_path / "a.txt").write_text("the cat<|endoftext|>" * 40 + "the end<|endoftext|>")
    (tmp_path / "b.txt").write_text("the hat<|endoftext|>" * 9)
    held = Validation(0.1, [str(tmp_path / "b.txt")])
    for block in (1 << 20, 1, 13, 20):
        monkeypatch.setattr(text_file, "BLOCK", block)
        text = open_text(str(tmp_path / "a.txt"), validation=held)
        train_part, val_part = corpus_of(text, tokenizer).split(0.1, 4)
        assert tokenizer.decode(train_part.tokens[:].tolist()).endswith(b"the end<|endoftext|><|endoftext|>")
        assert tokenizer.decode(val_part.tokens[:].tolist()) == b"the hat<|endoftext|>" * 9 + b"<|endoftext|>"


def test_documents_begin_as_their_tokenizer_begins_a_text(tmp_path, cache, monkeypatch):
    """However the text is cut, in the cache and without it; the tokens that are added stand for no byte."""
    special = {"<s>": 265, "</s>": 266}
    pairs = BytePairTokenizer(BPE.vocabulary, BPE.merges, special=special)
    words = pairs.using(Conventions(bos=265, eos=266, before=(265,)))
    texts = [b"hello", b"the </s> other", b"house"]
    for i, content in enumerate(texts):
        (tmp_path / f"{i}.txt").write_bytes(content)
    named = [str(tmp_path / f"{i}.txt") for i in range(3)]
    due = [token for content in texts for token in (265, *pairs.encode(content), 266)]
    for block in (1 << 20, 3):
        monkeypatch.setattr("byhand.corpus.text_file.BLOCK", block)
        assert corpus_of(open_text(named), words).tokens[:].tolist() == due
    monkeypatch.setattr("byhand.corpus.encoding.cache_folder", lambda: None)
    assert corpus_of(open_text(named), words).tokens[:].tolist() == due
    alone = corpus_of(open_text(named[0]), words)
    assert alone.tokens[:].tolist() == [265, *pairs.encode(texts[0])]
    assert (alone.count_bytes(), corpus_of(open_text(named[0]), pairs).count_bytes()) == (5, 5)
    text = open_text(named, None, Validation(0.3))
    val = corpus_of(text, words).split(0.3, 2)[1].tokens[:].tolist()
    assert (val[0], val[-1], val.count(265)) == (265, 266, 1)


def test_a_text_is_encoded_anew_only_if_other_tokens_are_put_into_it(text, cache):
    def files():
        return len(list(cache.rglob("*.bin")))

    words = BytePairTokenizer(BPE.vocabulary, BPE.merges, special={"<s>": 265})
    for conventions, count in ((None, 1), (Conventions(ends=(265,)), 1), (Conventions(before=(265,)), 2)):
        corpus_of(text, words.using(conventions) if conventions else words)
        assert files() == count


def _all():
    """Tokenizers, and how many bytes the end of a document counts in each."""
    ends = {"<|endoftext|>": 265}
    special = BytePairTokenizer(BPE.vocabulary, BPE.merges, special=ends)
    composing = BytePairTokenizer(BPE.vocabulary, BPE.merges, special=ends, normal="NFC")
    pieces = {prefix: of_hugging_face(tokenizer_json(prefix)) for prefix in ("each", "words", "none")}
    return {"bytes": (BYTES, 1), "bpe": (BPE, 1), "special": (special, 0), "NFC": (composing, 0)} | {
        prefix: (made, 0) for prefix, made in pieces.items()
    }


@pytest.mark.parametrize("name", _all())
def test_bytes_are_those_of_the_text_whatever_the_vocabulary(tmp_path, cache, name):
    """Also where the tokens decode to other bytes: composed letters, and spaces for \u2581."""
    tokenizer, end = _all()[name]
    texts = [
        "hello the <|endoftext|>caf\u00e9",
        " the hat \u2581 and the cafe\u0301</s>x",
        "e\u0301" * 9,
        "the other",
    ]
    for i, content in enumerate(texts):
        (tmp_path / f"{i}.txt").write_text(content, encoding="utf-8")
    literal = [text for text in tokenizer.special if text != "<unk>"]
    sizes = [len(re.sub("|".join(literal) or "$", "", content).encode()) + end for content in texts]
    named = [str(tmp_path / f"{i}.txt") for i in range(4)]
    assert corpus_of(open_text(named), tokenizer).count_bytes() == sum(sizes)
    assert corpus_of(open_text(named[2]), tokenizer).count_bytes(1) in range(sizes[2] - end - 2, sizes[2] + 1)
    held = open_text(named[:2], None, Validation(sources=named[2:]))
    train_part, val_part = corpus_of(held, tokenizer).split(0.1, 2)
    assert (train_part.count_bytes(), val_part.count_bytes()) == (sum(sizes[:2]), sum(sizes[2:]))
    tokens = val_part.rows(np.zeros(1, np.int64), len(val_part))
    first = val_part.count_bytes() - val_part.count_bytes(1)
    assert val_part.bytes_of(tokens[:, :-1], tokens[:, 1:]) == pytest.approx(sum(sizes[2:]) - first, abs=1)
    own = corpus_of(open_text(named[:2]), tokenizer).split(0.5, 2)
    assert sum(part.count_bytes() for part in own) == pytest.approx(sum(sizes[:2]), abs=1)
