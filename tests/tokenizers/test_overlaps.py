"""Texts that overlap: as pairs say it, in steps by their characters; and special tokens without end."""

import json

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from byhand.errors import DataError
from byhand.tokenizers import overlaps
from byhand.tokenizers.bpe import BytePairTokenizer
from byhand.tokenizers.hugging_face import of_hugging_face
from byhand.tokenizers.overlaps import overlap
from byhand.tokenizers.symbols import byte_symbols

TEXTS = st.lists(st.text("abc", min_size=1, max_size=6), max_size=5)


def overlapping(one, other):
    """Return whether a text can hold both at overlapping places."""
    ends = any(one.endswith(other[:k]) or other.endswith(one[:k]) for k in range(1, min(len(one), len(other)) + 1))
    return ends or one in other or other in one


@given(TEXTS, TEXTS)
@example(["ac", "a"], ["ab"])  # the text inside, not another with its prefix
def test_overlaps_are_those_of_pairs(some, others):
    pairs = [(one, other) for one in some for other in others if overlapping(one, other)]
    found = overlap(some, others)
    assert found in pairs if pairs else found is None


@pytest.mark.parametrize(
    ("some", "others"),
    [
        (["a" * 3000 + "b"], ["a" * 3000]),
        (["a" * k + "b" for k in range(1, 80)], ["c" * k + "d" for k in range(1, 80)]),
        (["ab" * 1500 + "x"], ["y" + "ba" * 1500 + "z"]),
        ([f"<{k}>" for k in range(1000)], [f"[{k}]" for k in range(1000)]),
        (["a" * 1000 + "b", "a" * 500 + "c"], ["d" + "a" * 999 + "e"] * 3),
    ],
)
def test_overlaps_take_steps_by_the_characters_alone(some, others, monkeypatch):
    """A million pairs took a comparison of all their suffixes each."""
    steps = 0

    class Counted(dict):
        def __contains__(self, key):
            nonlocal steps
            steps += 1
            return super().__contains__(key)

    monkeypatch.setattr(overlaps.Prefixes, "table", Counted)
    overlap(some, others)
    assert steps <= 6 * sum(map(len, some + others))


def added(texts, late=()):
    symbols = byte_symbols()
    tokens = [{"id": 256 + k, "content": text, "normalized": text in late} for k, text in enumerate([*texts, *late])]
    return {
        "model": {"type": "BPE", "vocab": symbols, "merges": []}, "added_tokens": tokens,
        "pre_tokenizer": {"type": "ByteLevel", "add_prefix_space": False},
    }  # fmt: skip


def test_special_tokens_have_an_end():
    """4,000 prefixes of one text would be a pattern of 800 MB."""
    nested = ["a" * k for k in range(2, 4000)]
    with pytest.raises(DataError, match="special tokens have more than 262,144 characters"):
        of_hugging_face(added(nested))
    with pytest.raises(DataError, match="special tokens have more than 262,144 characters"):
        BytePairTokenizer(byte_symbols(), [], special={text: 256 + k for k, text in enumerate(nested)})


def test_a_thousand_special_tokens_are_found():
    early, late = [f"<{k}>" for k in range(1000)], {f"[{k}]": None for k in range(1000)}
    found = of_hugging_face(json.loads(json.dumps(added(early, late))))
    assert found.encode("a<999>[0]") == [97, 256 + 999, 256 + 1000]


def test_the_parts_of_a_long_token_are_not_looked_up_without_end():
    lengths = {"a" * k: 256 + k for k in range(2, 3000)}
    looked = 0

    class Counted(dict):
        def __contains__(self, key):
            nonlocal looked
            looked += len(key)
            return super().__contains__(key)

    with pytest.raises(DataError, match="so long that their parts cannot be looked up"):
        BytePairTokenizer(Counted({**byte_symbols(), "b" * (1 << 20): 300_000, **lengths}), None)
    assert looked < 1 << 27
