"""Tokenizers in files: every form comes back with the same ids, and what cannot be represented is refused."""

import base64
import json
import os
from pathlib import Path

import numpy as np
import pytest

from byhand.errors import DataError
from byhand.tokenizers import forms
from byhand.tokenizers.bpe import BytePairTokenizer
from byhand.tokenizers.byte import BYTES
from byhand.tokenizers.hugging_face import as_hugging_face, of_hugging_face
from byhand.tokenizers.ranks import as_ranks, of_ranks
from byhand.tokenizers.registry import restored, stored
from byhand.tokenizers.splitting import SPLITS
from byhand.tokenizers.symbols import visible_bytes
from byhand.tokenizers.training import train
from oracle.nasty_texts import SPECIAL, nasty_texts

STORED = json.loads(Path(__file__).with_name("stored_ids.json").read_text())
TEXTS = list(nasty_texts(40, 5, special=True))
LEARNT = "\n".join([*nasty_texts(60, 6), *["hello the cat 's cats  \n"] * 30]).encode()


def trained(split="gpt4", special=SPECIAL):
    return train([LEARNT], 340, split, special)


@pytest.mark.parametrize("split", SPLITS)
def test_stored_ids_of_other_programs(split):
    """Ids that tokenizers, and tiktoken where it knows the split, gave (`make_fixtures.py`)."""
    tokenizer = of_hugging_face(STORED["splits"][split]["tokenizer.json"])
    assert tokenizer.split.name == split
    for text, ids in zip(STORED["texts"], STORED["splits"][split]["ids"], strict=True):
        assert tokenizer.encode(text) == ids, repr(text)


@pytest.mark.parametrize("split", SPLITS)
def test_tokenizer_json_comes_back(tmp_path, split):
    ours = trained(split)
    forms.write(ours, tmp_path / "t.json")
    read = forms.read(tmp_path / "t.json")
    assert read.digest == ours.digest
    assert forms.read(tmp_path / "t.json").content == stored(restored(stored(ours)))
    forms.write(read, tmp_path / "again.json")
    assert (tmp_path / "again.json").read_bytes() == (tmp_path / "t.json").read_bytes()


def test_a_runs_own_file_is_read(tmp_path):
    ours = trained()
    (tmp_path / "tokenizer.json").write_bytes(stored(ours))
    for path in (tmp_path / "tokenizer.json", tmp_path):
        assert forms.read(path).digest == ours.digest


def test_vocab_and_merges_come_back(tmp_path):
    ours = trained("gpt2")
    forms.write(ours, tmp_path / "folder")
    read = forms.read(tmp_path / "folder")
    assert read.special == ours.special
    assert [read.encode(text) for text in TEXTS] == [ours.encode(text) for text in TEXTS]
    more = forms.read(tmp_path / "folder", "gpt4", ["<|more|>"])
    assert (more.split.name, more.special["<|more|>"], more.vocab_size) == ("gpt4", 340, 341)


def test_ranks_come_back(tmp_path):
    ours = trained(special=())
    forms.write(ours, tmp_path / "t.tiktoken")
    read = forms.read(tmp_path / "t.tiktoken")
    assert [read.encode(text) for text in TEXTS] == [ours.encode(text) for text in TEXTS]
    assert as_ranks(read) == as_ranks(ours)
    named = forms.read(tmp_path / "t.tiktoken", "gpt2", SPECIAL)
    assert named.special == {text: 340 + k for k, text in enumerate(SPECIAL)}
    assert restored(stored(named)).digest == named.digest
    forms.write(named, tmp_path / "t.json")  # the merges are found again
    listed = forms.read(tmp_path / "t.json")
    assert listed.merges == trained(special=()).merges
    assert [listed.encode(text) for text in TEXTS] == [named.encode(text) for text in TEXTS]
    forms.write(named, tmp_path / "folder")
    assert forms.read(tmp_path / "folder").merges == listed.merges


def changed(**values):
    made = json.loads(as_hugging_face(trained()))
    for name, value in values.items():
        if name in made:
            made[name] = value
        else:
            made["model"][name] = value
    return json.dumps(made)


def added(**values):
    token = {"id": 338, "content": "<|endoftext|>", "special": True, **values}
    return changed(added_tokens=[token])


SYMBOLS = {sign: token for token, sign in enumerate(visible_bytes())}
SPLIT = json.loads(as_hugging_face(trained()))["pre_tokenizer"]["pretokenizers"]


def sequence(**values):
    return {"type": "Sequence", "pretokenizers": [{**SPLIT[0], **values}, SPLIT[1]]}


REFUSED = {
    "no JSON": ("{", "it is not valid JSON"),
    "another model": (changed(type="WordPiece"), "its model is not BPE"),
    "no model": (json.dumps({"model": None}), "its model is not BPE"),
    "sentencepiece": (changed(byte_fallback=True), "byhand does not know its normalizer and pre_tokenizer"),
    "dropout": (changed(dropout=0.1), "uses dropout"),
    "a prefix": (changed(continuing_subword_prefix="##"), "uses continuing_subword_prefix"),
    "ids that are words": (changed(vocab={"a": "b"}), "vocab is not one table"),
    "merges that are a word": (changed(merges="a b"), "merges are not a list"),
    "three symbols": (changed(merges=["a b c"]), "merges are not pairs"),
    "a merge without a symbol": (changed(merges=[["a", "zzz"]]), "which the vocabulary lacks"),
    "ignore_merges": (changed(ignore_merges=1), "neither true nor false"),
    "a normalizer": (changed(normalizer={"type": "Lowercase"}), "normalizer is not NFC"),
    "a decoder": (changed(decoder={"type": "Metaspace"}), "decoder is not ByteLevel"),
    "no pre-tokenizer": (changed(pre_tokenizer=None), "not one that byhand knows"),
    "a space in front": (changed(pre_tokenizer={**SPLIT[1], "add_prefix_space": True}), "adds a space in front"),
    "another pattern": (
        changed(pre_tokenizer=sequence(pattern={"Regex": "(?<a>b)"})),
        "cannot use the pattern|its own pattern",
    ),
    "words removed": (
        changed(pre_tokenizer=sequence(behavior="Removed")),
        "splits as Removed, with invert False",
    ),
    "a greedy token": (added(lstrip=True), "uses lstrip"),
    "a token without id": (added(id=-1), "has no id"),
    "a token of another's id": (added(id=5, content="x y"), "'x y' has the id 5, where others would give it 340"),
    "a token behind a gap": (added(id=900, content="x y"), "'x y' has the id 900, where others would give it 340"),
    "a token that is not composed": (added(id=340, content="e\u0301", normalized=True), "but is not NFC itself"),
    "a part looked for later": (
        changed(added_tokens=[
            {"id": 340, "content": "<x>"}, {"id": 341, "content": "<x>>", "normalized": True},
        ]),
        "only one of them is normalized",
    ),
    "a token with another id": (added(id=400, content="a"), "'a' has another id in the vocabulary"),
    "a token that writes another byte": (added(id=SYMBOLS["é"], content="é"), "'é' has the id of another token"),
    "overlapping tokens": (
        changed(added_tokens=[
            {"id": 340, "content": "abc"}, {"id": 341, "content": "xab", "normalized": True},
        ]),
        "overlap, but only one of them is normalized",
    ),
    "a token that composing makes": (
        changed(normalizer={"type": "NFC"}, added_tokens=[{"id": 340, "content": "ézz"}]),
        "can also arise by composing",
    ),
    "half a character as a token": (added(id=340, content="\udc80"), "is not valid Unicode"),
    "half a character as a symbol": (changed(vocab={**SYMBOLS, "\udc80": 400}, added_tokens=[]), "not valid Unicode"),
    "a merge twice": (
        changed(merges=[["a", "a"], ["a", "a"]], vocab={**SYMBOLS, "aa": 400}, added_tokens=[]),
        "merges 1 and 2 are",
    ),
    "a token that is no table": (changed(added_tokens=["x"]), "not a list of tokens"),
}  # fmt: skip


@pytest.mark.parametrize("name", REFUSED)
def test_what_ids_would_differ_for_is_refused(tmp_path, name):
    content, message = REFUSED[name]
    (tmp_path / "t.json").write_text(content)
    with pytest.raises(DataError, match=message) as error:
        forms.read(tmp_path / "t.json")
    assert "\n" not in str(error.value)
    assert str(error.value).count("..") == 0


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        (b"", "no rank for the byte 0"),
        (b"!!!! 0\n", "line 1"),
        (b"AA== -1\n", "line 1"),
        (b"AA== 0\nAA== 1\n", "line 2"),
        (b"AA== 99999999\n", "line 1"),
        (b"AA==\n", "line 1"),
        (b" 5\n", "line 1"),
        (b"AA== 0 5\n", "line 1"),
    ],
)
def test_what_are_no_ranks(tmp_path, lines, message):
    (tmp_path / "t.tiktoken").write_bytes(lines)
    with pytest.raises(DataError, match=message):
        forms.read(tmp_path / "t.tiktoken")


def test_two_tokens_of_one_rank():
    lines = b"".join(base64.b64encode(bytes([byte])) + b" %d\n" % min(byte, 254) for byte in range(256))
    with pytest.raises(DataError, match="two symbols with the id 254"):
        of_ranks(lines, "gpt4")


def test_what_a_form_cannot_hold(tmp_path):
    ours = trained()
    with pytest.raises(DataError, match="for GPT-2's pre-tokenizer"):
        forms.write(ours, tmp_path / "folder")
    assert not (tmp_path / "folder").exists()
    symbols = {sign: token for token, sign in enumerate(visible_bytes())}
    loose = BytePairTokenizer(symbols | {"ab": 256}, [])
    with pytest.raises(DataError, match="tokens that no merge makes"):
        forms.write(loose, tmp_path / "t.tiktoken")
    late = BytePairTokenizer(symbols | {"ab": 257, "bc": 256}, [("a", "b"), ("b", "c")])
    with pytest.raises(DataError, match="in the order of the merges"):
        forms.write(late, tmp_path / "t.tiktoken")
    for path in (tmp_path / "t.json", tmp_path / "folder"):
        with pytest.raises(DataError, match="also a symbol"):
            forms.write(BytePairTokenizer(symbols, [], special={"a": 256}), path)
    with pytest.raises(DataError, match="no merge of two tokens makes 'abc'"):
        forms.write(BytePairTokenizer(symbols | {"abc": 256}, None), tmp_path / "t.json")
    with pytest.raises(DataError, match="not a tokenizer's name"):
        forms.write(ours, tmp_path / "t.txt")
    with pytest.raises(DataError, match="a byte tokenizer has no file"):
        forms.write(BYTES, tmp_path / "t.json")
    with pytest.raises(DataError, match="cannot write"):
        forms.write(ours, tmp_path / "none" / "t.json")


def test_a_special_token_may_be_one_that_merges_make(tmp_path):
    """`tokenizers` gives [256, 97] for "aba", whichever way the token is found."""
    vocabulary = {**SYMBOLS, "ab": 256, "abc": 257}
    (tmp_path / "t.json").write_text(
        changed(vocab=vocabulary, merges=[["a", "b"], ["ab", "c"]], added_tokens=[{"id": 256, "content": "ab"}])
    )
    read = forms.read(tmp_path / "t.json")
    assert (read.encode("aba"), read.encode("abc"), read.special) == ([256, 97], [256, 99], {"ab": 256})
    assert read.count_bytes(np.array([256, 257])) == 3
    forms.write(read, tmp_path / "again.json")
    assert forms.read(tmp_path / "again.json").digest == read.digest
    assert restored(stored(read)).digest == read.digest


@pytest.mark.parametrize(
    ("symbols", "text", "ids"),
    [
        (["中"], "中", [228, 184, 173]),
        ([" a"], " a", [32, 97]),
        (["a中"], "a中", [97, 228, 184, 173]),
        (["ä¸Ń", "中"], "中", [256]),
        (["中", "ä¸Ń"], "中", [257]),
        (["Ġa"], " a", [256]),
    ],
)
def test_a_word_is_looked_up_as_visible_bytes_alone(symbols, text, ids):
    """`ignore_merges` with symbols that are no bytes: the ids are those that `tokenizers` gave."""
    vocabulary = SYMBOLS | {symbol: 256 + k for k, symbol in enumerate(symbols)}
    ours = BytePairTokenizer(vocabulary, [], whole=True, split="gpt4")
    assert of_hugging_face(json.loads(as_hugging_face(ours))).encode(text) == ids
    assert ours.array([f"{text}\n".encode() * (1 << 15)]).tolist()[: len(ids)] == ids  # by compiled loops


def test_special_tokens_of_one_character_come_back_in_every_form(tmp_path):
    ours = trained("gpt2", ("あ", "<|x|>"))
    ids = ours.encode("aあb<|x|>")
    assert ids[1] == ours.special["あ"]
    for name in ("t.json", "folder"):
        forms.write(ours, tmp_path / name)
        assert forms.read(tmp_path / name).encode("aあb<|x|>") == ids
    forms.write(ours, tmp_path / "t.tiktoken")
    assert forms.read(tmp_path / "t.tiktoken", "gpt2", ("あ", "<|x|>")).encode("aあb<|x|>") == ids


def test_ranks_say_no_special_tokens_and_a_line_says_so(tmp_path, caplog):
    forms.write(trained("gpt2", ("<|x|>",)), tmp_path / "t.tiktoken")
    assert '--split gpt2 --special "<|x|>"' in caplog.text


def test_merges_that_ranks_would_join_in_another_order_are_no_ranks(tmp_path):
    vocabulary = {**SYMBOLS, "cb": 256, "bc": 257, "cbc": 258}
    ours = BytePairTokenizer(vocabulary, [("c", "b"), ("b", "c"), ("c", "bc")])
    assert ours.encode("acbc") == [97, 256, 99]
    assert BytePairTokenizer(vocabulary, None).encode("acbc") == [97, 258]
    with pytest.raises(DataError, match="would merge other tokens"):
        forms.write(ours, tmp_path / "t.tiktoken")


def test_ranks_of_long_runs_are_read(tmp_path):
    ours = train([b"=" * 20_000], 270)
    forms.write(ours, tmp_path / "t.tiktoken")
    assert forms.read(tmp_path / "t.tiktoken").encode("=" * 999) == ours.encode("=" * 999)


def test_a_place_that_is_taken_or_cannot_be_written_is_known_before_the_work(tmp_path):
    forms.write(trained(), tmp_path / "t.json")
    with pytest.raises(DataError, match=r"t.json exists already"):
        forms.require_place(tmp_path / "t.json", "gpt4")
    with pytest.raises(DataError, match=r"cannot write .*: File exists"):
        forms.write(trained(), tmp_path / "t.json")
    with pytest.raises(DataError, match=r"Use --split gpt2, or NAME\.json"):
        forms.require_place(tmp_path / "folder", "gpt4")
    for place in (tmp_path / "none" / "t.json", tmp_path / "t.json" / "folder"):
        with pytest.raises(DataError, match="is not a folder"):
            forms.require_place(place, "gpt2")
    (tmp_path / "own").mkdir()
    (tmp_path / "own" / "tokenizer.json").touch()
    (tmp_path / "own.json").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "nowhere") if os.name != "nt" else (tmp_path / "link").touch()
    for name in ("own", "own.json", "link"):
        with pytest.raises(DataError, match=r"exists already|is not a folder"):
            forms.require_place(tmp_path / name, "gpt2")
    forms.require_place(tmp_path / "folder", "gpt2")
    forms.require_place(tmp_path / "new" / "folder", "gpt2")
    forms.require_place(tmp_path / "new.tiktoken", "gpt4")


def test_a_file_that_says_all_takes_no_more(tmp_path):
    forms.write(trained(), tmp_path / "t.json")
    with pytest.raises(DataError, match="holds its own pre-tokenizer and special tokens"):
        forms.read(tmp_path / "t.json", "gpt2")
    with pytest.raises(DataError, match="there is no file or folder"):
        forms.read(tmp_path / "none.json")
