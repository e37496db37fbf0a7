"""SentencePiece's tokens: ids by merging as it is defined, files of every kind, decoding, and its bytes counted."""

from __future__ import annotations

import json
import random
import re
from contextlib import suppress
from itertools import pairwise

import numpy as np
import pytest

import sentencepiece_cases as cases
from byhand.errors import DataError
from byhand.generation import StopText
from byhand.tokenizers import forms
from byhand.tokenizers.hugging_face import as_hugging_face, of_hugging_face
from byhand.tokenizers.registry import restored, stored
from byhand.tokenizers.sentencepiece_files import NORMAL, VocabularyPiece, of_model, of_pieces

WORDS = of_model(cases.tokenizer_model())
PARTS = ["the", " ", "  ", "▁", "a", "aa", "hello", "\n", "中文", "é", "🙂", "<s>", "</s>", "1", "0x1F", "'", "q"]


def texts(count: int) -> list[str]:
    chance = random.Random(1)
    return ["".join(chance.choices(PARTS, k=chance.randint(0, 12))) for _ in range(count)]


def by_definition(text: str) -> list[int]:
    """Merge the pair of adjacent pieces of the highest score, the leftmost among equals, until there is none."""
    known = {piece: (token, score) for token, (piece, score, kind) in enumerate(cases.pieces()) if kind == NORMAL}
    row = list("▁" + text.replace(" ", "▁")) if text else []
    while found := [(-known[a + b][1], k) for k, (a, b) in enumerate(pairwise(row)) if a + b in known]:
        k = min(found)[1]
        row[k : k + 2] = [row[k] + row[k + 1]]
    ids = [[known[piece][0]] if piece in known else [3 + byte for byte in piece.encode()] for piece in row]
    return [token for each in ids for token in each]


def test_ids_are_those_of_merging_by_score():
    for text in texts(150):
        parts = text.replace("</s>", "<s>").split("<s>")
        marks = [2 if mark == "</s>" else 1 for mark in re.findall("</?s>", text)]
        due = by_definition(parts[0])
        for mark, part in zip(marks, parts[1:], strict=True):
            due += [mark, *by_definition(part)]
        assert WORDS.encode(text) == due, text


@pytest.mark.parametrize("prefix", ["each", "words", "first", "none"])
def test_a_text_may_come_in_any_blocks_and_comes_back(prefix):
    words = of_hugging_face(cases.tokenizer_json(prefix))
    for text in texts(60):
        raw, ids = text.encode(), words.encode(text)
        for size in (1, 3, 7):
            found = words.encode_blocks([raw[i : i + size] for i in range(0, len(raw), size)])
            assert [int(token) for part in found for token in part] == ids
        if prefix in ("each", "none"):
            assert words.decode(ids) == text.replace("▁", " ").encode()


def test_bytes_that_are_no_text_come_back():
    raw = b"the \xff\xfe hat\xe4"
    assert WORDS.decode(WORDS.encode(raw)) == raw


def test_the_added_space_is_no_byte_of_the_text_wherever_a_text_begins():
    for text in texts(60):
        ids = np.array(WORDS.encode(re.sub("</?s>", "", text)), np.int64)
        size = len(WORDS.decode(ids.tolist()))
        assert WORDS.count_bytes(ids) == size
        for cut in range(1, len(ids)):
            rest = WORDS.count_bytes(ids[cut:], ids[cut - 1 : -1])
            assert WORDS.count_bytes(ids[:cut]) + rest == size
            assert len(WORDS.decode(ids[cut:].tolist(), int(ids[cut - 1]))) == rest
    assert WORDS.prompt("the") == [1, *WORDS.encode("the")]
    assert WORDS.decode(WORDS.encode("the"), after=1) == b"the"
    assert WORDS.decode(WORDS.encode("the"), after=5) == b" the"


def test_a_stop_text_ends_a_continuation_within_the_bytes_of_a_character():
    until = StopText(WORDS.decoder(WORDS.encode("the")[-1]), ["🙂".encode()])
    ends = [until(token) for token in WORDS.encode("a 🙂")]
    assert ends[-1] == len(ends) - 4
    assert until.text == b" a "  # it continues a text: the space stays


def test_every_file_is_the_same_tokenizer(tmp_path):
    (tmp_path / "tokenizer.model").write_bytes(cases.tokenizer_model())
    (tmp_path / "tokenizer.bin").write_bytes(cases.tokenizer_bin())
    (tmp_path / "a.json").write_text(json.dumps(cases.tokenizer_json()), encoding="utf-8")
    for name in ("tokenizer.model", "tokenizer.bin", "a.json", ""):
        found = forms.read(tmp_path / name)
        assert found.ids_digest == WORDS.ids_digest, name
        assert found.conventions.before == (1,)
        assert restored(stored(found)).digest == found.digest
    forms.write(WORDS, tmp_path / "b.json")
    assert forms.read(tmp_path / "b.json").ids_digest == WORDS.ids_digest
    assert of_model(cases.tokenizer_model(prefix=False)).encode("the")[0] != WORDS.encode("the")[0]
    with pytest.raises(DataError, match=r"only a \.json file"):
        forms.write(WORDS, tmp_path / "b.tiktoken")


@pytest.mark.parametrize("late", [False, True])
@pytest.mark.parametrize("prefix", ["each", "words", "first", "none"])
def test_a_tokenizer_json_comes_back(prefix, late):
    values = cases.tokenizer_json(prefix, late)
    found = of_hugging_face(values)
    again = json.loads(as_hugging_face(found))
    if prefix != "each":  # no prefix is added to a matched token, so early and late matching agree
        values["added_tokens"] = cases.tokenizer_json(prefix)["added_tokens"]
    assert {k: again[k] for k in ("normalizer", "pre_tokenizer", "decoder", "added_tokens")} == {
        k: values[k] for k in ("normalizer", "pre_tokenizer", "decoder", "added_tokens")
    }
    assert again["model"]["merges"] == values["model"]["merges"]
    assert of_hugging_face(again).digest == found.digest == restored(stored(found)).digest


def test_added_tokens_that_are_text_have_spaces_too():
    """Gemma's runs of spaces, which merges make, and others that none does."""
    values = cases.with_text_tokens()
    words = of_hugging_face(values)
    for text in ("the    cat", "a▁▁▁▁b▁<b>▁", "\n\n    \n\n"):
        ids = words.encode(text)
        assert words.decode(ids) == text.replace("▁", " ").encode()
        assert words.count_bytes(np.array(ids)) == len(text)
        assert text[:3] == "the" or {*words.conventions.shown} & {*ids}
    again = of_hugging_face(json.loads(as_hugging_face(words)))
    assert again.digest == words.digest == restored(stored(words)).digest
    assert restored(stored(words)).token_bytes == words.token_bytes
    values["added_tokens"] = [{**values["added_tokens"][-2], "normalized": True}]
    with pytest.raises(DataError, match="'▁<b>▁' is looked for where spaces are ▁ already"):
        of_hugging_face(values)


def test_a_token_that_is_looked_for_in_normalized_text_needs_a_space_before_it():
    words = of_hugging_face(cases.tokenizer_json("each", late=True))
    assert words.encode("<s>")[0] == 1
    assert 1 not in words.encode("a<s>")
    assert words.encode("a <s>")[-1] == 1


def test_equal_scores_are_merged_from_left_to_right():
    scores = [*cases.pieces()[:259], ("ab", -1.0, NORMAL), ("bc", -1.0, NORMAL), *((c, -9.0, NORMAL) for c in "▁abc")]
    words = of_pieces([VocabularyPiece(*each) for each in scores])
    assert words.ranks == {"ab": 0, "bc": 0}
    assert words.encode("abc") == [261, 259, 264]
    assert restored(stored(words)).encode("abc") == [261, 259, 264]


def test_merges_of_another_order_are_kept():
    values = cases.tokenizer_json()
    values["model"]["merges"].reverse()
    words = of_hugging_face(values)
    assert words.merges is not None
    found = [text for text in texts(60) if words.encode(text) != WORDS.encode(text)]
    assert found
    assert all(restored(stored(words)).encode(text) == words.encode(text) for text in found)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda v: v["model"]["vocab"].pop("<0x41>"), "no token for the byte <0x41>"),
        (lambda v: v.update(decoder=None), "its decoder is not"),
        (lambda v: v.update(normalizer={"type": "NFKC"}), "its normalizer and pre_tokenizer"),
        (lambda v: v.update(pre_tokenizer={"type": "Metaspace"}), "its normalizer and pre_tokenizer"),
        (lambda v: v["model"].update(ignore_merges=True), "ignore_merges"),
    ],
)
def test_a_tokenizer_json_that_gives_other_ids_is_refused(change, message):
    values = cases.tokenizer_json()
    change(values)
    with pytest.raises(DataError, match=message):
        of_hugging_face(values)


def test_damaged_files_are_refused():
    whole = cases.tokenizer_model()
    with pytest.raises(DataError, match="not BPE"):
        of_model(cases.tokenizer_model(model=1))
    with pytest.raises(DataError, match="have their space at the end"):
        of_model(cases.tokenizer_model(suffix=True))
    for end in range(1, len(whole), 97):
        with pytest.raises(DataError):
            of_model(whole[:end])
    chance = random.Random(2)
    for _ in range(60):
        content = bytearray(whole)
        content[chance.randrange(len(whole))] = chance.randrange(256)
        with suppress(DataError):  # and nothing else
            of_model(bytes(content))


def test_a_long_text_without_spaces_takes_no_quadratic_time():
    text = "中文字aaaa" * 4000
    assert WORDS.decode(WORDS.encode(text)) == text.encode()
