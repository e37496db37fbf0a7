"""Conversations become rows: only answers are targets, and one that is too long loses its beginning."""

import gzip
import json
import re

import numpy as np
import pytest

from byhand.conversations.messages import Message
from byhand.corpus.chats import ChatCorpus, chats_of, open_chats
from byhand.corpus.dataset import batch_generator
from byhand.corpus.documents import Reading
from byhand.corpus.texts import Validation
from byhand.errors import DataError
from byhand.tokenizers.bpe import BytePairTokenizer
from byhand.tokenizers.byte import BYTES
from byhand.tokenizers.hugging_face import of_hugging_face
from byhand.tokenizers.symbols import visible_bytes
from conversations.families import OWN, with_template
from sentencepiece_cases import tokenizer_json


def talk(*turns, system=""):
    roles = ["system"] * bool(system) + ["user", "assistant"] * len(turns)
    return [
        {"role": role, "content": text}
        for role, text in zip(roles, ([system] * bool(system)) + list(turns), strict=False)
    ]


def written(path, *talks):
    path.write_text("".join(json.dumps({"messages": each}) + "\n" for each in talks))
    return path


def text_of(row):
    return bytes(row.astype(np.uint8)).rstrip(b"\0").decode().replace("\0", "|")


TALKS = [talk(f"say {i}", f"{i}" * (1 + i % 3)) for i in range(20)]


def test_a_row_holds_conversations_and_targets_where_they_answer(tmp_path):
    corpus = chats_of(open_chats((str(written(tmp_path / "a.jsonl", *TALKS)),)), BYTES, 80)
    assert corpus.count == 20
    tokens, targets = corpus.sample_batch(6, 80, batch_generator(1, 0))
    assert tokens.shape == targets.shape == (6, 80)
    for row, wanted in zip(tokens, targets, strict=True):
        talks = text_of(np.append(row, wanted[-1] if wanted[-1] >= 0 else 0)).split("User:\n")[1:]
        assert len(talks) >= 2
        answers = [each.split("Assistant:\n")[1].rstrip("|") + "\0" for each in talks]
        assert bytes(wanted[wanted >= 0].astype(np.uint8)).decode() == "".join(answers)
    again, _ = corpus.sample_batch(6, 80, batch_generator(1, 0))
    np.testing.assert_array_equal(tokens, again)


def test_every_conversation_is_drawn_about_as_often():
    sizes = np.array([3, 9, 5, 4])
    ends = np.concatenate([[0], sizes.cumsum()])
    ids = np.repeat(np.arange(1, 5), sizes).astype(np.uint8)
    corpus = ChatCorpus(ids, np.ones(len(ids), bool), ends, BYTES, "x")
    tokens, _ = corpus.sample_batch(4000, 19, batch_generator(1, 0))
    counts = np.array([np.count_nonzero(tokens == i + 1) / n for i, n in enumerate(sizes)])
    assert np.ptp(counts) / counts.mean() < 0.12


def test_validation_takes_whole_conversations_each_alone(tmp_path):
    path = written(tmp_path / "a.jsonl", *TALKS)
    corpus = chats_of(open_chats((str(path),), Validation(0.3)), BYTES, 64)
    train, val = corpus.split(0.3, 64)
    assert train.count + val.count == 20
    assert 3 <= val.count <= 9
    tokens, _ = val.spread_windows(100, 64)
    assert len(tokens) == val.count
    assert all(text_of(row).count("User:") == 1 for row in tokens)
    assert len({text_of(row) for row in tokens} | {text_of(row) for row in train.spread_windows(99, 64)[0]}) == 20
    own = chats_of(
        open_chats((str(path),), Validation(0.1, [str(written(tmp_path / "v.jsonl", talk("x", "y")))])), BYTES, 64
    )
    assert [part.count for part in own.split(0.1, 64)] == [20, 1]


def test_what_is_too_long_loses_its_oldest_questions_then_its_beginning(tmp_path, caplog):
    caplog.set_level("INFO", "byhand")
    long = talk("a", "b" * 30, "c", "d", "e", "f", system="s")
    path = written(tmp_path / "a.jsonl", long, talk("g", "h" * 90), talk("i", "j"))
    corpus = chats_of(open_chats((str(path),)), BYTES, 60)
    rows, targets = corpus.spread_windows(9, 60)
    texts = sorted(text_of(row) for row in rows)
    assert texts == ["System:\ns|User:\nc|Assistant:\nd|User:\ne|Assistant:\nf", "User:\ni|Assistant:\nj", "h" * 60]
    assert (targets >= 0).any(axis=1).all()
    assert "2 conversations cut at the beginning, to 61 tokens" in caplog.text
    with pytest.raises(DataError, match="more than seq_len 16"):
        corpus.require(16)


def test_answers_that_are_not_learnt_are_counted_or_left_out(tmp_path, caplog):
    pytest.importorskip("jinja2")
    caplog.set_level("INFO", "byhand")
    last = {"role": "assistant", "content": "z", "train": False}
    path = written(tmp_path / "a.jsonl", talk("a", "b", "c", "d", system="s"), [*talk("e", "f", "g"), last])
    tokenizer = with_template("bpe", *OWN["mistral, system last"])
    corpus = chats_of(open_chats((str(path),)), tokenizer, 90)
    assert sorted(tokenizer.decode(row[row >= 0]) for row in corpus.spread_windows(9, 90)[1]) == [
        b" d</s>",
        b" f</s>",
    ]
    assert ": 1 answer not learnt: the model's chat template writes before them" in caplog.text


def test_compressed_files_and_questions_without_an_answer(tmp_path, caplog):
    caplog.set_level("INFO", "byhand")
    lines = [json.dumps({"messages": each}) for each in (talk("a"), talk("b", "c", "d"))]
    (tmp_path / "a.jsonl.gz").write_bytes(gzip.compress("\n\n".join(lines).encode()))
    corpus = chats_of(open_chats((str(tmp_path / "*.gz"),)), BYTES, 60)
    assert text_of(corpus.spread_windows(9, 60)[0][0]) == "User:\nb|Assistant:\nc"
    assert "1 conversation without an answer left out" in caplog.text


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ("{", r"a\.jsonl:1 is not valid JSON"),
        ('{"messages": 3}', r"a\.jsonl:1 has no list of messages"),
        (
            '\n{"messages": [{"role": "tool", "content": "3"}]}',
            r"a\.jsonl:2: a message is from 'tool', which is not read",
        ),
        (
            '{"messages": [{"role": "assistant", "content": null, "tool_calls": [{"id": "x"}]}]}',
            r"a\.jsonl:1: a message calls tools, which is not read\. Leave",
        ),
        (
            '{"messages": [{"role": "user", "content": [{"type": "image_url", "image_url": {}}]}]}',
            r"a\.jsonl:1: a message has a part 'image_url', but only text is read",
        ),
        ('[\n {"messages": []},\n {"messages" 3}\n]', r"a\.jsonl:3 is not valid JSON: Expecting ':' delimiter"),
        ('[\n {"messages": []},\n {"messages": 3}]', r"a\.jsonl:3 has no list of messages"),
        (
            '[{"messages": []},\n {"messages": []}\n',
            r"a\.jsonl:2: the JSON array that begins the file does not end",
        ),
        ("[" * 50_000, r"a\.jsonl:1 is not valid JSON: "),
        ("", r"a\.jsonl holds no conversation with an answer\. Name a file"),
    ],
)
def test_files_without_conversations_are_refused(tmp_path, content, words):
    (tmp_path / "a.jsonl").write_text(content)
    with pytest.raises(DataError, match=words):
        open_chats((str(tmp_path / "a.jsonl"),))
    with pytest.raises(DataError, match="python-stdlib holds no conversations"):
        open_chats(("python-stdlib",))


def test_what_is_no_conversation_in_a_folder_is_skipped_and_listed_and_stops_if_strict(tmp_path, caplog):
    caplog.set_level("INFO", "byhand")
    good = json.dumps({"messages": talk("a", "b")})
    tool = json.dumps({"messages": [{"role": "tool", "content": "3"}]})
    (tmp_path / "README.md").write_text(f"# Talks\n\n{good}\n")
    (tmp_path / "array.json").write_text("[1, 2, 3]")
    (tmp_path / "image.jsonl").write_bytes(b"\x89PNG\0\xff")
    (tmp_path / "talks.jsonl").write_text(f"{good}\n{tool}\n{{\n{good}\n")
    assert chats_of(open_chats((str(tmp_path),)), BYTES, 80).count == 2
    for said in (
        r"skipped: \S+README.md:1 is not valid JSON", r"skipped 3 documents: \S+array.json:1 has no list of messages",
        r"skipped, not text: \S+image.jsonl", r"skipped 2 documents: \S+talks.jsonl:2: a message is from 'tool'",
    ):  # fmt: skip
        assert re.search(said, caplog.text)
    with pytest.raises(DataError, match=r"README.md:1 is not valid JSON"):
        open_chats((str(tmp_path),), reading=Reading(strict=True))
    with pytest.raises(DataError, match=r"talks.jsonl:2: a message is from 'tool'"):
        open_chats((str(tmp_path / "talks.jsonl"),))
    (tmp_path / "talks.jsonl").unlink()
    with pytest.raises(DataError, match=r"holds no conversation with an answer\. \S+README.md:1 is not"):
        open_chats((str(tmp_path),))


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16"])
@pytest.mark.parametrize("indent", [None, 1])
def test_an_array_is_as_good_as_lines_in_what_encoding_soever(tmp_path, indent, encoding):
    whole = json.dumps([{"messages": each} for each in TALKS], indent=indent, ensure_ascii=False)
    (tmp_path / "a.json").write_text(f" {whole}\n", encoding=encoding)
    written(tmp_path / "a.jsonl", *TALKS)
    found, lines = (chats_of(open_chats((str(tmp_path / name),)), BYTES, 80).tokens for name in ("a.json", "a.jsonl"))
    np.testing.assert_array_equal(found, lines)


@pytest.mark.parametrize("indent", [None, 1])
def test_a_list_of_messages_is_one_conversation(tmp_path, indent):
    (tmp_path / "a.json").write_text(json.dumps(talk("a", "b"), indent=indent))
    assert chats_of(open_chats((str(tmp_path / "a.json"),)), BYTES, 80).count == 1


def test_a_content_of_several_texts_is_joined(tmp_path):
    parts = [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]
    path = written(
        tmp_path / "a.jsonl", [{"role": "user", "content": parts}, {"role": "assistant", "content": ["c"]}]
    )
    assert bytes(chats_of(open_chats((str(path),)), BYTES, 90).tokens) == b"User:\nab\0Assistant:\nc\0"


def test_messages_are_what_they_were(tmp_path):
    path = written(tmp_path / "a.jsonl", talk("ünï\n<x>", '\\u0041 "q"'))
    corpus = chats_of(open_chats((str(path),)), BYTES, 90)
    assert bytes(corpus.tokens).decode() == 'User:\nünï\n<x>\0Assistant:\n\\u0041 "q"\0'
    assert Message("user", "x").role == "user"


@pytest.mark.parametrize("name", ["bytes", "bpe", "NFC", "pieces"])
def test_answers_count_their_own_bytes(tmp_path, name):
    """The end of an answer counts as a byte only where it is one."""
    special = {"<|im_start|>": 256, "<|im_end|>": 257}
    symbols = {sign: token for token, sign in enumerate(visible_bytes())}
    pairs = {n: BytePairTokenizer(symbols, [], special=special, normal=n) for n in ("", "NFC")}
    pieces = of_hugging_face(tokenizer_json("none"))
    tokenizer = {"bytes": BYTES, "bpe": pairs[""], "NFC": pairs["NFC"], "pieces": pieces}[name]
    answers = ["the caf\u00e9", "e\u0301e\u0301 \u2581 hello", "", "12"]
    talks = [talk("say it", answer) for answer in answers]
    corpus = chats_of(open_chats((str(written(tmp_path / "a.jsonl", *talks)),)), tokenizer, 200)
    sizes = [len(answer.encode()) + (name == "bytes") for answer in answers]
    assert corpus.bytes_of(*corpus.alone(range(4), 200)) == pytest.approx(sum(sizes), rel=1e-12)
    _, val = corpus.split(0.5, 200)
    assert val.bytes_of(*val.alone(range(2), 200)) == pytest.approx(sum(sizes[2:]), rel=1e-12)
