"""Merges and ids are those of tokenizers, tiktoken and rustbpe, on texts that are made to tell them apart.

`pytest -m "oracle and slow" tests/oracle/test_tokenizers.py` compares 10^5 texts.
"""

import random

import pytest

from byhand.tokenizers import compiled, forms
from byhand.tokenizers.splitting import SPLITS
from byhand.tokenizers.training import train
from byhand.tokenizers.unicode_kinds import LETTER, NEWLINE, NUMBER, SPACE, kinds
from oracle.nasty_texts import SPECIAL, nasty_texts
from oracle.token_peers import peers_of

tokenizers = pytest.importorskip("tokenizers")
tiktoken = pytest.importorskip("tiktoken")
rustbpe = pytest.importorskip("rustbpe")
load_tiktoken_bpe = pytest.importorskip("tiktoken.load").load_tiktoken_bpe
pytestmark = pytest.mark.oracle
LEARNT = "\n".join([*nasty_texts(2000, 1), *["the cat sat, hello world's best 中文中文 1234 the the"] * 50])
COUNTS = [1000, pytest.param(25_000, marks=pytest.mark.slow)]


@pytest.mark.parametrize("count", COUNTS)
@pytest.mark.parametrize("split", SPLITS)
def test_ids_are_those_of_others(split, count):
    tokenizer = train([LEARNT.encode()], 600, split, SPECIAL)
    peers = peers_of(tokenizer)
    for text in nasty_texts(count, 7, special=True):
        ids = tokenizer.encode(text)
        if compiled.available():
            assert [int(t) for part in tokenizer._encoder.encode([text.encode()]) for t in part] == ids
        for name, encode in peers.items():
            assert encode(text) == ids, f"{name}: {text!r}"


@pytest.mark.parametrize("count", COUNTS)
@pytest.mark.parametrize("split", ["gpt2", "gpt4", "qwen2"])
def test_merges_and_ids_are_those_of_rustbpe(split, count):
    ours = train([LEARNT.encode()], 800, split)
    theirs = rustbpe.Tokenizer()
    theirs.train_from_iterator([LEARNT], 800, pattern=SPLITS[split].regex[-1])
    assert [bytes(token) for token, _ in theirs.get_mergeable_ranks()] == [ours.token_bytes[i] for i in range(800)]
    for text in nasty_texts(count, 8):
        assert theirs.encode(text) == ours.encode(text), repr(text)


def test_bytes_that_are_no_text():
    """Bytes of no character are signs, which make one word; tiktoken agrees on a text of nothing else."""
    tokenizer = train([LEARNT.encode()], 600, "gpt4")
    encoding = tiktoken.Encoding(
        "ours",
        pat_str=SPLITS["gpt4"].regex[-1],
        mergeable_ranks={tokenizer.token_bytes[token]: token for token in tokenizer.vocabulary.values()},
        special_tokens={},
    )
    chance = random.Random(3)
    for _ in range(300):
        content = bytes(chance.randrange(0x80, 0xC0) for _ in range(chance.randint(1, 9)))
        assert encoding._encode_bytes(content) == tokenizer.encode(content), content


@pytest.mark.parametrize("form", ["t.json", "t.tiktoken", "folder"])
def test_what_others_write_is_read(tmp_path, form):
    """A tokenizer.json, ranks, and vocab.json with merges.txt that `tokenizers` and tiktoken wrote."""
    split = "gpt2" if form == "folder" else "gpt4"
    ours = train([LEARNT.encode()], 600, split, () if form == "t.tiktoken" else SPECIAL)
    forms.write(ours, tmp_path / "ours.json")
    file = tokenizers.Tokenizer.from_file(str(tmp_path / "ours.json"))
    if form == "t.json":
        file.save(str(tmp_path / form), pretty=False)
    elif form == "folder":
        (tmp_path / form).mkdir()
        file.model.save(str(tmp_path / form))
    else:
        forms.write(ours, tmp_path / form)
        ranks = {ours.token_bytes[token]: token for token in ours.vocabulary.values()}
        assert load_tiktoken_bpe(str(tmp_path / form)) == ranks
    read = forms.read(tmp_path / form)
    for text in nasty_texts(200, 9, special=True):
        assert read.encode(text) == ours.encode(text), repr(text)


def test_every_code_point_is_of_its_kind():
    """Letters, numbers and spaces are those of the regex crate, which all three use."""
    table = kinds()
    text = "".join(chr(point) for point in range(0x110000) if not 0xD800 <= point < 0xE000)
    for pattern, wanted in ((r"\p{L}", (LETTER,)), (r"\p{N}", (NUMBER,)), (r"\s", (SPACE, NEWLINE))):
        ranks = {bytes([byte]): byte for byte in range(256)}
        encoding = tiktoken.Encoding("kinds", pat_str=pattern, mergeable_ranks=ranks, special_tokens={})
        found = bytes(encoding.encode_ordinary(text)).decode()
        assert [ord(sign) for sign in found] == [ord(sign) for sign in text if table[ord(sign)] in wanted]
