"""What holds of every tokenizer."""

import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from byhand.errors import DataError
from byhand.files.reading import SMALL
from byhand.tokenizers import registry
from byhand.tokenizers.bpe import BytePairTokenizer
from byhand.tokenizers.byte import BYTES
from byhand.tokenizers.registry import restored, stored
from toy_tokenizers import PairTokenizer, byte_pairs

ALL = {"byte": BYTES, "bpe": byte_pairs(), "pairs": PairTokenizer(bytes(range(0x40, 0x60)), special=True)}
SIGNS = st.sampled_from([b" ", b"\n", b"\t", b"\x0b", b"\x1c", b"\r\n", b"'s", b"'", b"the", b"9", b"\xff", b"\xe4"])
SIGNS |= st.sampled_from([s.encode() for s in ("é", "中", "\u3000", "\u00a0", "½", "😀", "\u2028")])
MIXED = st.lists(SIGNS, max_size=30).map(b"".join)
TEXTS = {
    "byte": st.binary(max_size=60),
    "bpe": MIXED | st.binary(max_size=60),
    "pairs": st.lists(st.binary(min_size=2, max_size=2)).map(lambda p: bytes(0x40 + b % 32 for b in b"".join(p))),
}


@pytest.mark.parametrize("name", ALL)
@given(data=st.data())
def test_every_text_comes_back_however_it_is_cut(name, data):
    tokenizer, text = ALL[name], data.draw(TEXTS[name])
    ids = tokenizer.encode(text)
    assert tokenizer.decode(ids) == text
    assert all(token in tokenizer and 0 <= token < tokenizer.vocab_size for token in ids)
    cuts = sorted(data.draw(st.lists(st.integers(0, len(text)), max_size=5)))
    blocks = [text[a:b] for a, b in zip([0, *cuts], [*cuts, len(text)], strict=True)]
    assert [int(t) for part in tokenizer.encode_blocks(blocks) for t in part] == ids


@pytest.mark.parametrize("name", ALL)
@given(data=st.data())
def test_bytes_are_counted(name, data):
    tokenizer = ALL[name]
    ids = data.draw(st.lists(st.integers(0, tokenizer.vocab_size - 1), max_size=20))
    content = tokenizer.decode([token for token in ids if token not in tokenizer.special_ids])
    assert tokenizer.count_bytes(np.array(ids, tokenizer.dtype)) == len(content)


def test_a_special_token_stands_for_no_byte():
    pairs = ALL["pairs"]
    special = pairs.vocab_size - 1
    assert pairs.decode([0, special, 1]) == pairs.decode([0, 1])
    assert pairs.count_bytes(np.array([special, 0, special])) == 2
    with pytest.raises(DataError, match="id 1025, but the pairs tokenizer has 1025"):
        pairs.count_bytes(np.array([special + 1]))


def test_types_of_ids_hold_every_id():
    assert [ALL[name].dtype for name in ALL] == [np.uint8, np.dtype("<u2"), np.dtype("<u2")]
    assert BytePairTokenizer({"a": 0, "b": 1 << 16}, []).dtype == np.dtype("<u4")


def test_bytes_cost_no_copy():
    text = b"some text"
    (block,) = BYTES.encode_blocks([text])
    assert block.tobytes() == text
    assert not block.flags.owndata


def test_which_vocabularies_fit():
    for size in (11, 256, 400):
        BYTES.require_vocabulary(size)
    for size in (265, 304):
        ALL["bpe"].require_vocabulary(size)
    with pytest.raises(DataError, match="bpe tokenizer has 265 tokens, but the model's vocab_size is 256"):
        ALL["bpe"].require_vocabulary(256)


@pytest.fixture
def registered(monkeypatch):
    monkeypatch.setattr(registry, "_kinds", {**registry._kinds})
    registry.register(PairTokenizer)


@pytest.mark.parametrize("name", ALL)
def test_what_is_stored_comes_back(registered, name):
    tokenizer = ALL[name]
    other = restored(stored(tokenizer))
    assert type(other) is type(tokenizer)
    assert (other.token_bytes, other.digest) == (tokenizer.token_bytes, tokenizer.digest)
    assert len({t.digest for t in ALL.values()}) == 3


def test_a_merge_listed_twice_is_refused():
    """Of two ranks some programs take the first, others the last."""
    with pytest.raises(DataError, match="merges 1 and 3 are the same"):
        BytePairTokenizer({"a": 0, "b": 1, "ab": 2, "aa": 3}, [("a", "b"), ("a", "a"), ("a", "b")])


def test_a_kind_that_nobody_registered_is_not_stored():
    with pytest.raises(DataError, match="a pairs tokenizer cannot be stored"):
        stored(ALL["pairs"])


GOOD = json.loads(byte_pairs().content)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "not valid JSON"),
        (b"[" * SMALL, "nested"),
        (b"[]", "kind is 'None'"),
        (b'{"kind":"wordpiece"}', "kind is 'wordpiece', which is not one of bpe, byte"),
        (b'{"kind":["bpe"]}', "not one of bpe, byte"),
        (b'{"kind":"bpe"}', "vocabulary is not"),
        (b'{"kind":"bpe","vocabulary":{"a":true},"merges":[]}', "vocabulary is not"),
        (b'{"kind":"bpe","vocabulary":{"a":1048576},"merges":[]}', "vocabulary is not"),
        (b'{"kind":"bpe","vocabulary":{"a":-1},"merges":[]}', "vocabulary is not"),
        (b'{"kind":"bpe","vocabulary":{"a":1},"merges":["aa"]}', "merges are not"),
        (b'{"kind":"bpe","vocabulary":{"a":1},"merges":[["a","a","a"]]}', "merges are not"),
        (b'{"kind":"bpe","vocabulary":{"a":1},"merges":[["a","a"]]}', "which the vocabulary lacks"),
        (b'{"kind":"bpe","vocabulary":{"a":1,"b":1},"merges":[]}', "two symbols"),
        (b'{"kind":"bpe","merges":[],"vocabulary":{"\\ud800":1}}', "not valid Unicode"),
        (b'{"kind":"bpe","merges":[],"vocabulary":{"a":1}} ', "differs from what byhand writes"),
        (b'{"kind":"bpe","merges":[],"more":1,"vocabulary":{"a":1}}', "differs from what byhand writes"),
        (b'{"kind":"bpe","merges":[],"vocabulary":{"a":1,"a":1}}', "the key 'a' twice"),
        (b'{"kind":"byte","more":1}', "differs from what byhand writes"),
    ],
)
def test_what_is_no_tokenizer_is_refused(content, message):
    with pytest.raises(DataError, match=message) as error:
        restored(content)
    assert str(error.value).isprintable()
    assert restored(b'{"kind":"bpe","merges":[],"vocabulary":{"a":1}}').encode("a") == [1]
