import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from byhand.errors import DataError
from byhand.tokenizers import vocab_files
from byhand.tokenizers.bpe import BytePairTokenizer
from byhand.tokenizers.byte import ByteTokenizer
from byhand.tokenizers.splitting import words
from byhand.tokenizers.symbols import visible_bytes

MERGES = [("h", "e"), ("l", "l"), ("he", "ll"), ("Ġ", "t"), ("hell", "o"), ("a", "a")]


def vocabulary():
    symbols = [*visible_bytes(), *("".join(pair) for pair in MERGES), "<|endoftext|>"]
    return {symbol: token for token, symbol in enumerate(symbols)}


def tokenizer():
    return BytePairTokenizer(vocabulary(), MERGES)


def test_merges_apply_in_their_order():
    ids = vocabulary()
    assert tokenizer().encode("hello") == [ids["hello"]]
    assert tokenizer().encode("hell tt") == [ids["hell"], ids["Ġt"], ids["t"]]
    assert tokenizer().encode("ehe") == [ids["e"], ids["he"]]
    assert tokenizer().encode("") == []


def test_the_earlier_merge_wins_over_the_one_further_left():
    ids = {"a": 0, "b": 1, "ab": 2, "aa": 3}
    assert BytePairTokenizer(ids, [("a", "b"), ("a", "a")]).encode("aab") == [0, 2]
    assert BytePairTokenizer(ids, [("a", "a"), ("a", "b")]).encode("aab") == [3, 1]


def test_a_repeated_pair_is_joined_from_the_left():
    ids = vocabulary()
    assert tokenizer().encode("aaa") == [ids["aa"], ids["a"]]
    assert tokenizer().encode("aaaa") == [ids["aa"], ids["aa"]]


def test_decode_gives_the_bytes_back():
    ids = vocabulary()
    assert tokenizer().decode([ids["hello"], ids["Ġt"]]) == b"hello t"
    assert tokenizer().decode([ids["<|endoftext|>"]]) == b"<|endoftext|>"
    with pytest.raises(DataError, match="9999"):
        tokenizer().decode([9999])


@given(st.text())
def test_every_text_comes_back(text):
    try:
        content = text.encode()
    except UnicodeEncodeError:
        return
    assert "".join(words(text)) == text
    assert tokenizer().decode(tokenizer().encode(text)) == content
    assert bytes(ByteTokenizer().encode(text)) == content


def test_words_are_gpt2s():
    # By the pre-tokenizer of Hugging Face's `tokenizers` 0.22, ByteLevel without prefix space.
    expected = {
        "Hello world's  12½ times!": ["Hello", " world", "'s", " ", " 12½", " times", "!"],
        "it's IT'S we're": ["it", "'s", " IT", "'", "S", " we", "'re"],
        "a\n\n b\t": ["a", "\n\n", " b", "\t"],
        "中文，١٢٣ é": ["中文", "，", "١٢٣", " é"],
        "x\u00a0y\u3000\u3000z": ["x", "\u00a0", "y", "\u3000", "\u3000", "z"],
        "_a_1": ["_", "a", "_", "1"],
        "end  ": ["end", "  "],
    }
    for text, cut in expected.items():
        assert words(text) == cut, text


def test_visible_bytes_are_distinct_and_printable():
    signs = visible_bytes()
    assert len(set(signs)) == 256
    assert (signs[ord("A")], signs[ord(" ")], signs[ord("\n")]) == ("A", "Ġ", "Ċ")


def test_bytes_that_are_no_utf8_pass_through():
    given_on_a_command_line = b"\xff\xfe".decode("utf-8", "surrogateescape")
    assert ByteTokenizer().encode(given_on_a_command_line) == [255, 254]
    assert tokenizer().decode(tokenizer().encode(given_on_a_command_line)) == b"\xff\xfe"


def files(tmp_path, vocab=None, merges=None):
    vocab = json.dumps(vocabulary()) if vocab is None else vocab
    merges = "#version: 0.2\n" + "".join(f"{a} {b}\n" for a, b in MERGES) if merges is None else merges
    (tmp_path / "vocab.json").write_text(vocab, encoding="utf-8")
    (tmp_path / "merges.txt").write_text(merges, encoding="utf-8")
    return tmp_path / "vocab.json", tmp_path / "merges.txt"


def test_from_files(tmp_path):
    read = BytePairTokenizer(*vocab_files.read(*files(tmp_path)))
    assert read.encode("hello the") == tokenizer().encode("hello the")


@pytest.mark.parametrize(
    ("vocab", "merges", "message"),
    [
        ("{", None, "not valid JSON"),
        ("[]", None, "one JSON object"),
        ('{"a": "b"}', None, "one JSON object"),
        ('{"a": 1, "b": 1}', "", "two symbols with the id 1"),
        (None, "a\n", "line 1"),
        (None, "#version\na b c\n", "line 2"),
        (None, "x y\n", "'xy', which the vocabulary lacks"),
    ],
)
def test_files_that_cannot_work(tmp_path, vocab, merges, message):
    with pytest.raises(DataError, match=message):
        BytePairTokenizer(*vocab_files.read(*files(tmp_path, vocab, merges)))


def test_missing_files_and_bytes(tmp_path):
    with pytest.raises(DataError, match="cannot read"):
        vocab_files.read(tmp_path / "no", tmp_path / "no")
    with pytest.raises(DataError, match="no token for 'b'"):
        BytePairTokenizer({"a": 0}, []).encode("ab")


def test_byte_tokenizer_knows_its_ids():
    assert 255 in ByteTokenizer()
    assert 256 not in ByteTokenizer()
    assert ByteTokenizer().decode([104, 105]) == b"hi"
    with pytest.raises(DataError, match="0 to 255"):
        ByteTokenizer().decode([256])
    with pytest.raises(DataError, match="invalid Unicode"):
        ByteTokenizer().encode("\ud800")
