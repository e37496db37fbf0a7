"""Encoding: Python's and the compiled loops' ids are those of the plain definition."""

import itertools
import random
import unicodedata
from collections import Counter
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from byhand.errors import DataError
from byhand.tokenizers import bpe, compiled, plain, training
from byhand.tokenizers.bpe import BytePairTokenizer
from byhand.tokenizers.splitting import SPLITS, pieces, words
from byhand.tokenizers.symbols import visible_bytes
from oracle.nasty_texts import SPECIAL, nasty_texts

fast = pytest.mark.skipif(not compiled.available(), reason="needs numba and scipy (extra `fast`)")
TEXT = "\n".join([*nasty_texts(100, 1), *["the cat sat on the mat, hello world's best hello 中文 1234 the the"] * 20])


@pytest.fixture(scope="module")
def trained():
    """A tokenizer for each split, and its merges."""
    made = {}
    for split in SPLITS:
        counts = Counter(piece.encode() for found in pieces([TEXT.encode()], SPLITS[split]) for piece in found)
        merges = plain.learn(counts, 120)
        made[split] = training.of_merges(merges, split, SPECIAL), merges
    return made


def in_python(tokenizer, blocks):
    return [
        t for found in pieces(blocks, tokenizer.split, tokenizer.special) for p in found for t in tokenizer._ids(p)
    ]


def in_loops(tokenizer, blocks):
    return [int(token) for ids in tokenizer._encoder.encode(blocks) for token in ids]


@pytest.mark.parametrize("split", SPLITS)
@given(seed=st.integers(0, 10**6))
def test_python_encodes_as_the_plain_definition(trained, split, seed):
    tokenizer, merges = trained[split]
    (text,) = nasty_texts(1, seed)
    expected = [token for word in words(text, SPLITS[split]) for token in plain.encode(word.encode(), merges)]
    assert tokenizer.encode(text) == expected


@fast
def test_threads_may_encode_with_one_tokenizer(trained):
    """The loops keep the words that any of them has met."""
    tokenizer, _ = trained["gpt4"]
    texts = ["\n".join(nasty_texts(700, seed, special=True)).encode() for seed in range(3)]
    expected = [in_python(tokenizer, [text]) for text in texts]
    with ThreadPoolExecutor(len(texts)) as pool:
        assert list(pool.map(lambda text: in_loops(tokenizer, [text[:9000], text[9000:]]), texts)) == expected


@fast
@pytest.mark.parametrize("split", SPLITS)
@given(seed=st.integers(0, 10**6), data=st.data())
def test_loops_encode_as_python_does(trained, split, seed, data):
    tokenizer, _ = trained[split]
    (text,) = nasty_texts(1, seed, special=True)
    content = text.encode()
    at = data.draw(st.integers(0, len(content)))
    content = content[:at] + data.draw(st.binary(max_size=4)) + content[at:]
    cuts = sorted(data.draw(st.lists(st.integers(0, len(content)), max_size=5)))
    blocks = [content[a:b] for a, b in zip([0, *cuts], [*cuts, len(content)], strict=True)]
    ids = in_python(tokenizer, [content])
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(compiled, "SHORT", data.draw(st.sampled_from((0, compiled.SHORT))))
        assert in_loops(tokenizer, blocks) == ids
        assert tokenizer._encoder.plain(content).tolist() == tokenizer._of_text(content)
    assert tokenizer.decode(ids) == content
    counted = np.array(ids, np.int64)
    assert tokenizer.count_bytes(counted) + tokenizer.count_special(counted) == len(content)


@fast
def test_a_memory_of_words_that_is_full_begins_anew(trained, monkeypatch):
    monkeypatch.setattr(compiled, "SLOTS", 8)
    monkeypatch.setattr(compiled, "LETTERS", 1 << 18)
    tokenizer = training.of_merges(trained["gpt4"][1], "gpt4")
    content = TEXT.encode() * 2
    assert in_loops(tokenizer, [content]) == in_python(tokenizer, [content])


@fast
@pytest.mark.parametrize("word", ["a" * 100_000, "the" * 30_000 + "中" * 5_000])
def test_very_long_words(trained, word):
    tokenizer, _ = trained["gpt4"]
    blocks = [word.encode()[i : i + 1000] for i in range(0, len(word), 1000)]
    blocks.append(word.encode()[len(blocks) * 1000 :])
    assert in_loops(tokenizer, blocks) == in_python(tokenizer, [word.encode()])


@fast
@pytest.mark.parametrize("fast_path", [False, True])
def test_long_texts_take_the_loops(trained, monkeypatch, fast_path):
    monkeypatch.setattr(bpe, "LONG", 1 if fast_path else 1 << 40)
    tokenizer, _ = trained["gpt2"]
    called = []
    encoder = tokenizer._encoder
    monkeypatch.setattr(encoder, "encode", lambda blocks, encode=encoder.encode: called.append(1) or encode(blocks))
    ids = tokenizer.encode(TEXT)
    assert bool(called) == fast_path
    assert ids == in_python(tokenizer, [TEXT.encode()])


@pytest.mark.parametrize("long", [1, 1 << 40])
def test_a_byte_without_a_token_is_named(monkeypatch, long):
    monkeypatch.setattr(bpe, "LONG", long)
    lacking = BytePairTokenizer({"a": 0, "b": 1, "ab": 2}, [("a", "b")])
    assert lacking.encode("abba") == [2, 1, 0]
    with pytest.raises(DataError, match="no token for 'c', which the text 'cab' needs"):
        lacking.encode("cab")


def test_ranks_join_any_two_tokens_whose_bytes_are_a_token():
    """tiktoken's rule: `abc` is also a + bc, though a merge list would know ab + c only."""
    ids = {sign: token for token, sign in enumerate(visible_bytes())} | {"bc": 256, "xa": 257, "abc": 258}
    assert BytePairTokenizer(ids, None).encode("abc") == [258]
    assert BytePairTokenizer(ids, [("b", "c"), ("x", "a"), ("a", "bc")]).encode("xabc") == [257, 256]
    assert BytePairTokenizer(ids, None).encode("xabc") == [257, 256]
    with pytest.raises(DataError, match="merge 1 joins 'q'"):
        BytePairTokenizer({"a": 0, "qa": 1}, [("q", "a")])


@pytest.mark.parametrize("path", ["python", pytest.param("loops", marks=fast)])
def test_a_word_that_is_a_token_is_taken_at_once(path):
    ids = {sign: token for token, sign in enumerate(visible_bytes())} | {"ab": 256, "bc": 257, "abc": 258}
    merges = [("a", "b"), ("b", "c")]
    encode = in_python if path == "python" else in_loops
    assert encode(BytePairTokenizer(ids, merges), [b"abc"]) == [256, 99]
    assert encode(BytePairTokenizer(ids, merges, whole=True), [b"abc abcabc"]) == [258, 32, 256, 99, 256, 99]


def test_of_special_tokens_the_longest_counts():
    ids = {sign: token for token, sign in enumerate(visible_bytes())}
    tokenizer = BytePairTokenizer(ids, [], special={"<|a": 256, "<|a|>": 257, "é": 258})
    assert tokenizer.encode("<|a|><|aé") == [257, 256, 258]
    with pytest.raises(DataError, match="empty"):
        BytePairTokenizer(ids, [], special={"": 256})
    with pytest.raises(DataError, match="'x y' has the id of another token"):
        BytePairTokenizer(ids, [], special={"x y": 5})


def test_special_tokens_are_found_before_characters_are_composed():
    ids = {sign: token for token, sign in enumerate(visible_bytes())}
    tokenizer = BytePairTokenizer(ids, [], special={"<|a|>": 256, "e\u0301|": 257}, normal="NFC")
    text = "e\u0301<|a|>\u0338e\u0301|x"
    whole = [*"é".encode(), 256, *"\u0338".encode(), 257, ord("x")]
    assert tokenizer.encode(text) == whole
    for cut in range(len(text.encode())):
        parts = [text.encode()[:cut], text.encode()[cut:]]
        assert [int(t) for part in tokenizer.encode_blocks(parts) for t in part] == whole, cut


def test_a_word_that_is_a_token_needs_no_token_for_its_bytes():
    tokenizer = BytePairTokenizer({"hi": 0, "\u010a": 1}, [], whole=True)
    assert tokenizer.encode("hi\n") == [0, 1]
    with pytest.raises(DataError, match="no token for 'h'"):
        tokenizer.encode("ho")


@given(blocks=st.lists(st.text("e\u0301\u1100\u1161a \n", max_size=8), max_size=5))
def test_composed_text(blocks):
    ids = {sign: token for token, sign in enumerate(visible_bytes())}
    tokenizer = BytePairTokenizer(ids, [], normal="NFC")
    found = [int(t) for part in tokenizer.encode_blocks([b.encode() for b in blocks]) for t in part]
    assert tokenizer.decode(found).decode() == unicodedata.normalize("NFC", "".join(blocks))


def test_random_tables_of_merges_agree():
    """Merges in any order, as other programs may write them: the pair of the least rank first, then the leftmost."""
    chance = random.Random(4)
    for _ in range(200):
        symbols, merges = [*visible_bytes()], []
        for _ in range(12):
            pair = tuple(chance.choice("abc" if chance.random() < 0.5 else symbols[256:] or "ab") for _ in range(2))
            if "".join(pair) not in symbols:
                symbols.append("".join(pair))
                merges.append(pair)
        chance.shuffle(merges)
        tokenizer = BytePairTokenizer({symbol: token for token, symbol in enumerate(symbols)}, merges)
        text = "".join(chance.choices("abc", k=30))
        ids = tokenizer.encode(text)
        assert ids == by_steps(tokenizer, [ord(sign) for sign in text])
        if compiled.available():
            assert in_loops(tokenizer, [text.encode()]) == ids


def by_steps(tokenizer, bytes_):
    ids = [tokenizer.vocabulary[visible_bytes()[byte]] for byte in bytes_]
    while True:
        known = [(tokenizer.pairs[p][0], k) for k, p in enumerate(itertools.pairwise(ids)) if p in tokenizer.pairs]
        if not known:
            return ids
        _, k = min(known)
        ids[k : k + 2] = [tokenizer.pairs[ids[k], ids[k + 1]][1]]


@fast
def test_a_long_text_without_special_tokens_is_encoded_by_the_loops(trained, monkeypatch):
    tokenizer, _ = trained["gpt2"]
    text = f"the cat{next(iter(SPECIAL))}sat "
    expected = tokenizer.encode_plain(text, {})
    monkeypatch.setattr(bpe, "LONG", 1)
    monkeypatch.setattr(BytePairTokenizer, "_of_text", None)
    monkeypatch.setattr(compiled, "SHORT", 0)
    assert tokenizer.encode_plain(text, {}) == expected
