"""How text is cut into words: the same by Python's `re` and by compiled loops, however the text comes in blocks."""

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from byhand.tokenizers import compiled
from byhand.tokenizers.splitting import SPLITS, pieces, words
from byhand.tokenizers.unicode_kinds import LETTER, NEWLINE, NUMBER, SPACE, kinds
from oracle.nasty_texts import SPECIAL, nasty_texts

fast = pytest.mark.skipif(not compiled.available(), reason="needs numba and scipy (extra `fast`)")
CUT = {  # by the pre-tokenizers of Hugging Face's `tokenizers` 0.23
    "gpt2": {
        "it's IT'S  we're": ["it", "'s", " IT", "'", "S", " ", " we", "'re"],
        "a\n\n b 12345!?\n\n": ["a", "\n\n", " b", " 12345", "!?", "\n\n"],
        "don'\u017f": ["don", "'", "\u017f"],
    },
    "gpt4": {
        "it's IT'S  we'RE": ["it", "'s", " IT", "'S", " ", " we", "'RE"],
        "a\n\n b 12345!?\n\n": ["a", "\n\n", " b", " ", "123", "45", "!?\n\n"],
        "don'\u017fx": ["don", "'\u017f", "x"],
        "(f)\tx \n \n  y": ["(f", ")", "\tx", " \n \n", " ", " y"],
        "'hello 'lo": ["'hello", " '", "lo"],
        "a \n  ": ["a", " \n", "  "],
    },
    "qwen2": {"x 123": ["x", " ", "1", "2", "3"]},
    "smollm": {"a  12 'S x3": ["a", "  ", "1", "2", " '", "S", " x", "3"]},
}


@pytest.mark.parametrize("split", CUT)
def test_words(split):
    for text, expected in CUT[split].items():
        assert words(text, SPLITS[split]) == expected, text


@pytest.mark.parametrize("split", SPLITS)
@given(seed=st.integers(0, 10**6), data=st.data())
def test_blocks_change_no_word(split, seed, data):
    (text,) = nasty_texts(1, seed, special=True)
    content = text.encode()
    whole = [piece for found in pieces([content], SPLITS[split], SPECIAL) for piece in found]
    assert "".join(whole) == text
    assert not any(special in piece and special != piece for special in SPECIAL for piece in whole)
    cuts = sorted(data.draw(st.lists(st.integers(0, len(content)), max_size=6)))
    parts = [content[a:b] for a, b in zip([0, *cuts], [*cuts, len(content)], strict=True)]
    assert [piece for found in pieces(parts, SPLITS[split], SPECIAL) for piece in found] == whole


@fast
@pytest.mark.parametrize("split", SPLITS)
@given(seed=st.integers(0, 10**6), data=st.data())
def test_compiled_loops_count_the_same_words(split, seed, data):
    (text,) = nasty_texts(1, seed, special=True)
    content = text.encode()
    if data.draw(st.booleans()):  # bytes that are no UTF-8
        at = data.draw(st.integers(0, len(content)))
        content = content[:at] + data.draw(st.binary(min_size=1, max_size=4)) + content[at:]
    cuts = sorted(data.draw(st.lists(st.integers(0, len(content)), max_size=6)))
    parts = [content[a:b] for a, b in zip([0, *cuts], [*cuts, len(content)], strict=True)]
    counter = compiled.Counter(SPLITS[split], SPECIAL)
    for _ in counter.feed(parts):
        pass
    expected = {}
    for piece in (piece for found in pieces([content], SPLITS[split], SPECIAL) for piece in found):
        if piece not in SPECIAL:
            word = piece.encode("utf-8", "surrogateescape")
            expected[word] = expected.get(word, 0) + 1
    letters, starts = counter.letters.tobytes(), counter.starts
    found = {letters[starts[k] : starts[k + 1]]: int(counter.counts[k]) for k in range(counter.count)}
    assert found == expected


@fast
def test_tables_grow():
    """Many distinct words, and one that is longer than all room there is at first."""
    content = b"".join(b" w%dw" % k for k in range(100_000)) + b" " + b"x" * (3 << 20)
    counter = compiled.Counter(SPLITS["gpt2"], ())
    for _ in counter.feed(content[i : i + 100_000] for i in range(0, len(content), 100_000)):
        pass
    distinct = {*words(content.decode())}
    assert counter.count == len(distinct)
    assert int(counter.starts[counter.count]) == sum(map(len, distinct))
    assert int(counter.counts.sum()) == len(words(content.decode()))


def test_kinds_are_those_of_unicode():
    """Python's Unicode agrees wherever it knows the character: kinds of characters hardly ever change."""
    table = kinds()
    for point in range(0x110000):
        category = unicodedata.category(chr(point))
        if category == "Cn":
            continue
        assert (table[point] == LETTER) == (category[0] == "L"), hex(point)
        assert (table[point] == NUMBER) == (category[0] == "N"), hex(point)
        space = chr(point).isspace() and not 0x1C <= point <= 0x1F  # Python's own: no White_Space
        assert (table[point] in (SPACE, NEWLINE)) == space, hex(point)
