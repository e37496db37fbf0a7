"""Training: compiled loops and the incremental code give the merges of the plain definition, ties included."""

import logging
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from byhand.errors import ConfigError, DataError
from byhand.tokenizers import compiled, plain, training
from byhand.tokenizers.splitting import SPLITS, pieces
from oracle.nasty_texts import SPECIAL, nasty_texts

fast = pytest.mark.skipif(not compiled.available(), reason="needs numba and scipy (extra `fast`)")
WORDS = st.dictionaries(st.text("abé", min_size=1, max_size=12).map(str.encode), st.integers(1, 5), max_size=8)


def test_the_rule_of_ties_by_hand():
    """Equally common: (97, 98), (98, 99), (98, 97) once the first is gone; the smallest ids come first."""
    assert plain.commonest({(98, 97): 2, (97, 99): 2, (97, 98): 2, (1, 1): 1}) == (97, 98)
    assert plain.learn({b"ab": 1, b"ba": 1}, 5) == [(97, 98), (98, 97)]
    assert plain.learn({b"aaaa": 1, b"aa": 1}, 9) == [(97, 97), (256, 256)]
    assert plain.learn({}, 3) == []


@given(words=WORDS, merges=st.integers(0, 30))
def test_the_incremental_trainer_is_the_plain_one(words, merges):
    assert [pair for part in training.learn(words, merges) for pair in part] == plain.learn(words, merges)


def compiled_merges(text, merges, split):
    counter = compiled.Counter(SPLITS[split], ())
    for _ in counter.feed([text]):
        pass
    return [pair for part in compiled.learn(counter, merges) for pair in part]


@fast
@pytest.mark.parametrize("split", SPLITS)
@given(texts=st.lists(st.text("ab '1\n中é", max_size=30), max_size=6), merges=st.integers(0, 40))
def test_the_compiled_trainer_is_the_plain_one(split, texts, merges):
    text = "\n".join(texts).encode()
    words = Counter(piece.encode() for found in pieces([text], SPLITS[split]) for piece in found)
    assert compiled_merges(text, merges, split) == plain.learn(words, merges)


@fast
def test_on_a_longer_text_all_three_agree(monkeypatch):
    text = "\n".join(nasty_texts(150, 3)).encode()
    words = Counter(piece.encode() for found in pieces([text], SPLITS["gpt4"]) for piece in found)
    expected = plain.learn(words, 150)
    assert len(expected) == 150
    assert [pair for part in training.learn(words, 150) for pair in part] == expected
    assert compiled_merges(text, 150, "gpt4") == expected
    monkeypatch.setattr(compiled, "AT_ONCE", 0)  # a pause after each merge
    assert compiled_merges(text, 150, "gpt4") == expected


@fast
def test_rooms_for_pairs_and_lists_grow():
    """Many pairs come up only after merges: the rooms that the text's first pairs need are too small."""
    text = " ".join(f"{a}x{b}y{a}" for a in range(300) for b in range(40)).encode()
    words = Counter(piece.encode() for found in pieces([text], SPLITS["gpt4"]) for piece in found)
    expected = [pair for part in training.learn(words, 3000) for pair in part]
    assert compiled_merges(text, 3000, "gpt4") == expected


@pytest.mark.parametrize("slow", [True, pytest.param(False, marks=fast)])
def test_a_trained_tokenizer(monkeypatch, caplog, slow):
    if slow:
        monkeypatch.setattr(compiled, "available", lambda: False)
    text = b"the cat <|end|> sat on the mat <|endoftext|>" * 20
    with caplog.at_level(logging.INFO, "byhand"):
        made = training.train([text[:100], text[100:]], 300, "gpt4", SPECIAL)
    assert made.vocab_size < 300
    assert "the text has only" in caplog.text
    assert [made.decode([token]) for token in range(256)] == [bytes([byte]) for byte in range(256)]
    assert made.special == {text: made.vocab_size - 2 + k for k, text in enumerate(SPECIAL)}
    ids = made.encode(text)
    assert made.decode(ids) == text
    assert len(ids) == 20 * (len([" the", " cat", " ", *SPECIAL, " sat", " on", " the", " mat", " "]))
    assert not any(b"<" in content or b"|" in content for content in list(made.token_bytes.values())[256:-2])
    assert training.train([text], 270, "gpt4").vocab_size == 270


def test_a_short_text_is_learnt_from_without_compiling(monkeypatch):
    """The first start of the loops compiles for seconds; a text of a page is over in a hundredth of one."""
    asked = []
    monkeypatch.setattr(compiled, "available", lambda: asked.append(1))
    text = b"the cat sat on the mat " * 20
    short = training.train([text], 270, size=len(text))
    assert not asked
    assert training.train([text], 270, size=training.LONG).merges == short.merges
    assert asked


@pytest.mark.parametrize(
    ("size", "special", "message"),
    [
        (255, (), "must be from 256"),
        (257, SPECIAL, "must be from 258"),
        (1 << 21, (), "to 1,048,576"),
        (300, ("a", "a"), "given twice"),
        (300, ("",), "is empty"),
        (300, ("\udcff",), "is not valid Unicode"),
        (300, ("e",), "is a symbol of a byte already"),
    ],
)
def test_what_cannot_be_trained(size, special, message):
    with pytest.raises((ConfigError, DataError), match=message):
        training.train([b"a text"], size, "gpt2", special)
