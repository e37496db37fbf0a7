"""Documents: what files hold in every form, and one line for what they do not."""

import codecs
import gzip
import io
import json
import logging
import random
import re
import sys
import types
from pathlib import Path
from types import SimpleNamespace

import pytest

from byhand.corpus.decoding import NoTextError
from byhand.corpus.documents import Reading
from byhand.corpus.fields import ROWS, _rows_at_once
from byhand.corpus.json_values import AHEAD, elements
from byhand.corpus.texts import Validation, open_text
from byhand.errors import DataError

TEXT = "Ein Wort – 一個字, and 🙂.\n" * 3000  # more than a block of any reader in part


def read(path, **how):
    """Return the documents of a file, each joined."""
    return [b"".join(document.blocks).decode() for document in Reading(**how).documents(path)]


@pytest.mark.parametrize("mark", [True, False], ids=["with its mark", "named"])
@pytest.mark.parametrize("encoding", ["utf-8", "utf-16-le", "utf-16-be", "utf-32-le", "utf-32-be"])
def test_unicode_is_read_by_its_mark_or_its_name(tmp_path, encoding, mark):
    path = tmp_path / "a.txt"
    path.write_bytes((("\ufeff" if mark else "") + TEXT).encode(encoding))
    assert read(path, encoding="auto" if mark else encoding) == [TEXT]


@pytest.mark.parametrize("encoding", ["cp1252", "gb18030", "shift_jis"])
def test_other_encodings_are_named(tmp_path, monkeypatch, encoding):
    monkeypatch.setitem(sys.modules, "chardet", None)
    text = {"cp1252": "Über – façade", "gb18030": "手算", "shift_jis": "手で計算"}[encoding] * 1000
    (tmp_path / "a.txt").write_bytes(text.encode(encoding))
    assert read(tmp_path / "a.txt", encoding=encoding) == [text]
    with pytest.raises(
        DataError,
        match=r'a\.txt is not UTF-8 at byte 0\. Name .*--encoding cp1252.* pip install "byhand\[data\]"',
    ):
        open_text(str(tmp_path / "a.txt"))


def test_the_error_names_the_first_bad_byte_wherever_blocks_end(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "chardet", None)
    for at in (0, 5, (1 << 20) - 2, (1 << 20) - 1, 1 << 20, (1 << 20) + 7):
        (tmp_path / "a.txt").write_bytes(b"a" * at + "é".encode() + b"\xe9" + b"z")
        with pytest.raises(DataError, match=f"at byte {at + 2:,}"):
            open_text(str(tmp_path / "a.txt"))


@pytest.mark.parametrize(("suffix", "squeezed"), [("", bytes), (".gz", gzip.compress)], ids=["plain", "gzip"])
def test_json_lines(tmp_path, suffix, squeezed):
    texts = ["one", "two\nlines", "三", "", TEXT]
    lines = "\n\n".join(json.dumps({"id": i, "text": t, "body": t[::-1]}) for i, t in enumerate(texts)) + "\n"
    path = tmp_path / f"a.jsonl{suffix}"
    path.write_bytes(squeezed(lines.encode()))
    assert read(path) == texts
    assert read(path, text_field="body") == [text[::-1] for text in texts]


@pytest.mark.parametrize("name", ["a.txt.gz", "a"])
def test_compressed_text_is_known_by_its_bytes(tmp_path, name):
    (tmp_path / name).write_bytes(gzip.compress(TEXT.encode()[:1000]) + gzip.compress(TEXT.encode()[1000:]))
    assert read(tmp_path / name) == [TEXT]
    assert open_text(str(tmp_path / name)).content[:].tobytes() == TEXT.encode()


@pytest.mark.parametrize("library", ["zstandard", "pyarrow"])
def test_a_library_that_is_missing_is_named(tmp_path, monkeypatch, library):
    for module in {"zstandard": ("compression", "backports"), "pyarrow": ("pyarrow",)}[library]:
        monkeypatch.setitem(sys.modules, module, None)
    (tmp_path / "a").write_bytes({"zstandard": b"\x28\xb5\x2f\xfd", "pyarrow": b"PAR1"}[library])
    with pytest.raises(DataError, match=r'Use pip install "byhand\[data\]"'):
        read(tmp_path / "a")


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("{", r":2 is not valid JSON: .*\. Fix or delete the line"),
        ("[" * 100_000, r":2 is not valid JSON: nested too deep"),
        ("[1]", r":2 is not a JSON object\. Write lines like \{\"text\": \"…\"\}"),
        ('{"body": "x", "id": 3}', r":2 has no field 'text' but 'body', 'id'\. Name the one .* --text-field"),
        ('{"text": "a", "n": ' + "1" * 5000 + "}", r":2 is not valid JSON: Exceeds the limit"),
        ('{"text": 5}', r":2: 'text' is not a string"),
        ('{"text": "a\\u0000b"}', r":2: 'text' contains a NUL character"),
        ('{"text": "\\ud800"}', r":2: 'text' contains half a surrogate pair"),
    ],
)
def test_a_bad_line_is_named(tmp_path, line, message):
    (tmp_path / "a.jsonl").write_text('{"text": "fine"}\n' + line + "\n")
    with pytest.raises(DataError, match=message):
        read(tmp_path / "a.jsonl")


def test_damaged_compression_is_named(tmp_path):
    whole = gzip.compress(random.Random(1).randbytes(5000).hex().encode())
    for damaged in (whole[:-9], whole[:200] + b"\0" * 50 + whole[250:], whole[:2] + b"\xff" * 40):
        (tmp_path / "a.gz").write_bytes(damaged)
        with pytest.raises(DataError, match=r"a\.gz: its compressed data is damaged \(.*\)\. Get it again\."):
            open_text(str(tmp_path / "a.gz"))


@pytest.mark.parametrize(
    "content", [b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR", b"text" * 5000 + b"\0more"], ids=["early", "late"]
)
def test_what_is_no_text_is_refused_by_name_and_skipped_in_a_folder(tmp_path, content, caplog):
    caplog.set_level(logging.INFO)
    (tmp_path / "b.png").write_bytes(content)
    with pytest.raises(NoTextError, match=r"b\.png is not text: .*--encoding bytes"):
        open_text(str(tmp_path / "b.png"))
    assert open_text(str(tmp_path / "b.png"), Reading(encoding="bytes")).content[:].tobytes() == content
    (tmp_path / "a.txt").write_text("one")
    (tmp_path / "c.txt").write_text("two")
    assert open_text(str(tmp_path)).content[:].tobytes() == b"one\0two\0"
    assert f"skipped, not text: {tmp_path / 'b.png'}" in caplog.text


def test_standard_input_is_one_text_or_lines_of_json_if_a_field_is_named(monkeypatch):
    def given(content):
        monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(content)))

    given(codecs.BOM_UTF16_LE + TEXT.encode("utf-16-le"))
    assert open_text("-").content[:].tobytes() == TEXT.encode()
    given(b'{"body": "a"}\n{"body": "b"}\n')
    assert open_text("-", Reading(text_field="body")).content[:].tobytes() == b"a\0b\0"
    given(b"")
    with pytest.raises(DataError, match="standard input holds no text"):
        open_text("-")
    with pytest.raises(DataError, match="Name it alone"):
        open_text(["a.txt", "-"])


def test_several_files_folders_and_patterns_are_read_once_each_in_order(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name in ("b/2.txt", "b/1.txt", "a.txt", "c.md", "d/e/f.txt"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(name)
    (tmp_path / "link.txt").symlink_to("a.txt")

    def found(*sources):
        return open_text(sources).content[:].tobytes().decode().split("\0")[:-1]

    assert found("c.md", "a.txt") == ["c.md", "a.txt"]
    assert found("b", "a.txt", "link.txt", "b/1.txt") == ["b/1.txt", "b/2.txt", "a.txt"]
    assert found("**/*.txt") == ["a.txt", "b/1.txt", "b/2.txt", "d/e/f.txt"]
    assert open_text("c.*").content[:].tobytes() == b"c.md"
    (tmp_path / "x[1].txt").write_text("a name, no pattern")
    assert open_text("x[1].txt").content[:].tobytes() == b"a name, no pattern"
    with pytest.raises(DataError, match=r"no file matches \*\.doc"):
        open_text("*.doc")


def test_validation_takes_whole_documents_drawn_by_their_bytes(tmp_path):
    rng = random.Random(3)
    texts = [rng.randbytes(rng.randrange(20, 60)).hex() for _ in range(500)]
    texts += texts[:100]  # equal ones are on one side

    def parts(texts, share):
        (tmp_path / "a.jsonl").write_text("\n".join(json.dumps({"text": text}) for text in texts))
        text = open_text(str(tmp_path / "a.jsonl"), validation=Validation(share))
        documents = text.content[:].tobytes().decode().split("\0")[:-1]
        return documents[: text.training], documents[text.training :]

    for share in (0.02, 0.1, 0.5):
        train, val = parts(texts, share)
        assert sorted(train + val) == sorted(texts)
        assert train == [text for text in texts if text in set(train)], "in their order"
        assert not set(train) & set(val)
        assert share / 2 < sum(map(len, val)) / sum(map(len, texts)) <= share
    before = set(parts(texts, 0.1)[1])
    after = parts([*texts, "another one"], 0.1)[1]
    assert len(before & set(after)) >= len(before) - 2, "a document more moves no other, but at the edge"


def test_a_few_long_documents_are_cut_at_the_end_of_the_text(tmp_path):
    for name in "abc":
        (tmp_path / f"{name}.txt").write_text(name * 1000)
    text = open_text(str(tmp_path), validation=Validation(0.1))
    assert (text.documents, text.training) == (True, 0)
    assert text.content[:].tobytes() == b"".join(name.encode() * 1000 + b"\0" for name in "abc")


def test_validation_of_its_own(tmp_path):
    (tmp_path / "a.txt").write_text("a")
    (tmp_path / "v.jsonl").write_text('{"text": "v"}\n{"text": "w"}\n')
    text = open_text(str(tmp_path / "a.txt"), validation=Validation(0.1, [str(tmp_path / "v.jsonl")]))
    assert text.content[:].tobytes() == b"a\0v\0w\0"
    assert text.training == 1
    (tmp_path / "empty").touch()
    with pytest.raises(DataError, match=r"the validation part of .* holds no text"):
        open_text(str(tmp_path / "a.txt"), validation=Validation(0.1, [str(tmp_path / "empty")]))


@pytest.mark.parametrize("encoding", ["utf-8", "utf-16-le", "utf-32-be"])
def test_json_lines_are_unicode_by_their_mark(tmp_path, encoding):
    """Whatever --encoding says of text files: JSON is UTF-8, or has a mark."""
    path, lines = tmp_path / "a.jsonl", '\ufeff{"text": "Ü\u010a"}\r\n\r\n{"text": "三"}'
    path.write_bytes(lines.encode(encoding))
    assert read(path) == read(path, encoding="cp1252") == ["Ü\u010a", "三"]
    path.write_bytes('{"text": "Ü"}'.encode("cp1252"))
    with pytest.raises(DataError, match=r"a\.jsonl is not UTF-8 at byte 10\. Write JSON in UTF-8"):
        read(path)


def test_lines_of_json_may_end_where_blocks_do_and_be_only_so_long(tmp_path, monkeypatch):
    path, rng = tmp_path / "a.jsonl", random.Random(5)
    texts = ["x" * rng.randrange(30) for _ in range(300)]
    path.write_text("".join(json.dumps({"text": text}) + "\n" for text in texts))
    for size in (1, 7, 64):
        monkeypatch.setattr("byhand.corpus.documents.BLOCK", size)
        assert read(path) == texts
    monkeypatch.setattr("byhand.corpus.fields.LONGEST_LINE", 50)
    path.write_text('{"text": ""}\n{"text": "' + "x" * 150 + '"}\n')
    with pytest.raises(DataError, match=r":2 is longer than 50 bytes\. Split it"):
        read(path)


@pytest.mark.parametrize("squeeze", ["bz2", "lzma"])
def test_compression_that_is_not_read_is_named_with_its_program(tmp_path, squeeze):
    (tmp_path / "a.txt").write_bytes(pytest.importorskip(squeeze).compress(b"abc" * 99))
    with pytest.raises(NoTextError, match=r"a\.txt is compressed, .* Unpack it with (bzip2|xz) -dc"):
        open_text(str(tmp_path / "a.txt"))


def test_an_encoding_that_can_write_half_a_character(tmp_path):
    (tmp_path / "a.txt").write_bytes(b"+2AA-")
    with pytest.raises(DataError, match=r"a\.txt has half a surrogate pair before byte 5"):
        open_text(str(tmp_path / "a.txt"), Reading(encoding="utf-7"))


def test_a_field_without_effect_is_refused(tmp_path):
    (tmp_path / "a.txt").write_text("one")
    (tmp_path / "b.jsonl").write_text('{"body": "two"}')
    with pytest.raises(DataError, match=r"--text-field changes nothing: .*a\.txt has no JSON lines and no parquet"):
        open_text(str(tmp_path / "a.txt"), Reading("body"))
    assert open_text(str(tmp_path), Reading("body")).content[:].tobytes() == b"one\0two\0"


def test_bytes_with_the_sign_that_ends_documents_stand_alone(tmp_path):
    """Otherwise a NUL in the first would count as its end, and training would skip the rest."""
    for name in "ab":
        (tmp_path / name).write_bytes(b"a\0b\0")
    with pytest.raises(DataError, match=r"a holds a NUL, which is the end of a document .*Name it alone"):
        open_text(str(tmp_path), Reading(encoding="bytes"))
    assert open_text(str(tmp_path / "a"), Reading(encoding="bytes")).content[:].tobytes() == b"a\0b\0"
    (tmp_path / "c").write_bytes(b"text")
    assert open_text(str(tmp_path), Reading(encoding="bytes")).content[:].tobytes() == b"text"


def test_texts_of_their_own_stand_alone_but_for_validation(tmp_path, monkeypatch):
    (tmp_path / "v.txt").write_text("v")
    monkeypatch.setattr("byhand.corpus.texts.library", lambda: b"def f(): pass")
    val = Validation(0.1, [str(tmp_path / "v.txt")])
    assert open_text("python-stdlib", validation=val).content[:].tobytes() == b"def f(): pass\0v\0"
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(b"piped")))
    assert open_text("-", validation=val).content[:].tobytes() == b"piped\0v\0"
    for named, held in ((["python-stdlib", "a"], []), (["a"], ["-"])):
        with pytest.raises(DataError, match=r"is a text of its own\. Name it alone"):
            open_text(named, validation=Validation(0.1, held))
    monkeypatch.setattr("sys.stdin", None)
    with pytest.raises(DataError, match="standard input, which is closed"):
        open_text("-")


def test_standard_input_that_cannot_be_read(tmp_path, monkeypatch):
    class Folder(io.RawIOBase):
        def readable(self):
            return True

        def readinto(self, _):
            raise IsADirectoryError(21, "Is a directory")

    for reading in (Reading(), Reading("text")):
        monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BufferedReader(Folder())))
        with pytest.raises(DataError, match="cannot read standard input: Is a directory"):
            open_text("-", reading)


@pytest.mark.parametrize(
    ("content", "found"),
    [
        ('{"text": "one"}\n\n{"text": "two"}\n', ["one", "two"]),
        ('\n[\n {"text": "one"},\n {"text": "two"}\n]\n', ["one", "two"]),
        ('["one", "two\\n"]', ["one", "two\n"]),
        ('{\n "title": "t",\n "text": "one"\n}\n', ["one"]),
        ('{"text": "one"}', ["one"]),
    ],
)
@pytest.mark.parametrize("squeezed", [bytes, gzip.compress], ids=["plain", "gzip"])
def test_a_json_file_of_texts_is_documents(tmp_path, squeezed, content, found):
    (tmp_path / "a.json").write_bytes(squeezed(content.encode()))
    assert read(tmp_path / "a.json") == found


@pytest.mark.parametrize(
    "content", ['{"name": "x"}', '{\n "name": "x"\n}', "[1, 2]", "[]", "// 1\n{}", "{", "[", "3"]
)
def test_a_json_file_without_texts_is_one_text_and_listed(tmp_path, caplog, content):
    caplog.set_level(logging.INFO)
    (tmp_path / "a.json").write_text(content)
    assert open_text(str(tmp_path / "a.json")).content[:].tobytes() == content.encode()
    assert f"1 file read as plain text (no documents with 'text'): {tmp_path / 'a.json'}" in caplog.text


@pytest.mark.parametrize("content", ['[{"body": "x"}, {"text": "two"}]', '{"body": "x"}\n{"text": "two"}'])
def test_objects_of_a_json_file_need_the_field_as_lines_do(tmp_path, content):
    (tmp_path / "a.json").write_text(content)
    with pytest.raises(DataError, match=r"a\.json:1 has no field 'text' but 'body'"):
        open_text(str(tmp_path / "a.json"))
    assert open_text(str(tmp_path)).content[:].tobytes() == b"two"


def test_an_array_is_read_element_by_element():
    rng = random.Random(7)
    values = [{"text": rng.randbytes(rng.randrange(90)).hex(), "n": [i, "三\n]"]} for i in range(1500)]
    written = json.dumps(values, indent=1, ensure_ascii=False)
    assert len(written) > 2 * AHEAD
    for longest in (1, 500, 10**9):
        at, line, pieces = 0, 1, []
        while at < len(written):
            piece = written[at : at + rng.randrange(1, longest + 1)]
            pieces.append((f"a:{line}", piece.encode()))
            at, line = at + len(piece), line + piece.count("\n")
        found = list(elements(pieces))
        assert [json.loads(each) for _, each in found] == values
        if longest == 1:
            assert [where for where, _ in found] == [f"a:{2 + 7 * i}" for i in range(len(values))]


def test_what_cannot_be_read_in_a_folder_is_skipped_and_listed_and_stops_if_strict(tmp_path, monkeypatch, caplog):
    monkeypatch.setitem(sys.modules, "chardet", None)
    caplog.set_level(logging.INFO)
    (tmp_path / "a.jsonl").write_text('{"text": "one"}\n{"text": "tw\n{"text": "three"}\n{"body": ""}\n')
    (tmp_path / "b.txt").write_bytes(b"caf\xe9")
    (tmp_path / "c.gz").write_bytes(gzip.compress(b"cut short")[:-9])
    (tmp_path / "d.txt").write_text("four")
    assert open_text(str(tmp_path)).content[:].tobytes() == b"one\0three\0four\0"
    for said in (r"skipped 2 documents: .*a\.jsonl:2 is not valid JSON", r"skipped: .*b\.txt is not UTF-8 at byte 3"):
        assert re.search(said, caplog.text)
    assert re.search(r"skipped: cannot read .*c\.gz: its compressed data is damaged", caplog.text)
    with pytest.raises(DataError, match=r"a\.jsonl:2 is not valid JSON"):
        open_text(str(tmp_path), Reading(strict=True))
    with pytest.raises(DataError, match=r"b\.txt is not UTF-8 at byte 3"):
        open_text([str(tmp_path / "b.txt"), str(tmp_path / "d.txt")])
    (tmp_path / "d.txt").unlink()
    (tmp_path / "a.jsonl").unlink()
    with pytest.raises(DataError, match=r"holds no text\. .*b\.txt is not UTF-8 at byte 3"):
        open_text(str(tmp_path))


def test_patterns_leave_out_files_and_folders(tmp_path, monkeypatch, caplog):
    caplog.set_level(logging.INFO)
    monkeypatch.chdir(tmp_path)
    for name in ("a.txt", "b.log", "drafts/c.txt", "d/drafts/e.txt", "d/f.log", "d/g.txt"):
        Path("t", name).parent.mkdir(parents=True, exist_ok=True)
        Path("t", name).write_text(name)

    def found(*exclude, named="t"):
        return open_text(named, Reading(exclude=exclude)).content[:].tobytes().decode().strip("\0").split("\0")

    assert found("*.log") == ["a.txt", "d/drafts/e.txt", "d/g.txt", "drafts/c.txt"]
    assert found("*.log", "drafts") == ["a.txt", "d/g.txt"]
    assert found("drafts/*", "d/*.log") == ["a.txt", "b.log", "d/drafts/e.txt", "d/g.txt"]
    assert found("d/**/*.txt") == ["a.txt", "b.log", "d/f.log", "drafts/c.txt"]
    assert found("*.log", "drafts", named="t/**") == ["a.txt", "d/g.txt"]
    assert not caplog.text.count("matches no file")
    assert len(found("*.bak")) == 6
    assert "--exclude matches no file: *.bak" in caplog.text
    with pytest.raises(DataError, match="t holds no text"):
        found("*")


def detecting(encoding):
    """Return a library that detects this encoding."""
    module = types.ModuleType("chardet")
    module.detect = lambda sample: {"encoding": encoding}
    return module


@pytest.mark.parametrize(
    ("content", "detected", "found"),
    [
        ("à l’école".encode("cp1252"), "Windows-1252", "cp1252"),
        (b"a" * 150_000 + "\né".encode("latin-1"), "ISO-8859-1", "cp1252"),
        ("a text".encode("utf-16-le"), "UTF-16LE", "utf-16-le"),
        ("Grüße ".encode() * 9 + b"\xff", "ISO-8859-1", None),  # damaged UTF-8
        (b"caf\xe9", None, None),
        (b"caf\xe9\x81", "Windows-1252", None),  # which has no 0x81
        (b"\x89PNG\xff\0\0", "ISO-8859-1", None),
    ],
)
def test_an_encoding_is_detected_in_what_is_not_utf8_and_listed(
    tmp_path, monkeypatch, caplog, content, detected, found
):
    monkeypatch.setitem(sys.modules, "chardet", detecting(detected))
    caplog.set_level(logging.INFO)
    (tmp_path / "a.txt").write_bytes(content)
    if not found:
        with pytest.raises(DataError, match=r"a\.txt is not (UTF-8 at byte|text)"):
            open_text(str(tmp_path / "a.txt"))
        return
    assert open_text(str(tmp_path / "a.txt")).content[:].tobytes().decode() == content.decode(found)
    assert f"1 file read as {found} (detected; --encoding names another): {tmp_path / 'a.txt'}" in caplog.text


def test_utf8_and_a_named_encoding_are_not_guessed(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "chardet", detecting("cp1252"))
    (tmp_path / "a.txt").write_text(TEXT, encoding="utf-8")
    assert read(tmp_path / "a.txt") == [TEXT]
    (tmp_path / "a.txt").write_bytes("手算".encode("gb18030"))
    assert read(tmp_path / "a.txt", encoding="gb18030") == ["手算"]


def test_rows_of_parquet_are_decoded_as_many_at_a_time_as_memory_holds():
    """Whatever a dictionary repeats: a value is at most as long as its column."""

    def rows(*sizes):
        groups = [
            SimpleNamespace(num_columns=1, column=lambda _, pair=pair: SimpleNamespace(
                path_in_schema="text", total_uncompressed_size=pair[0], total_compressed_size=pair[1]
            ))
            for pair in sizes
        ]  # fmt: skip
        return _rows_at_once(SimpleNamespace(num_row_groups=len(groups), row_group=groups.__getitem__), "text", "a")

    assert rows((1 << 20, 1 << 18), (1 << 10, 9)) == ROWS
    assert rows((1 << 20, 9), (1 << 26, 1 << 20)) == 8
    assert rows((1 << 40, 1 << 38)) == 1
    with pytest.raises(DataError, match=r"a: its 60,000 bytes unpack to 1,000,000,000"):
        rows((10**9, 60_000))


def test_lines_and_elements_of_countless_values_are_refused(tmp_path, monkeypatch):
    monkeypatch.setattr("byhand.files.reading.VALUES", 1000)
    monkeypatch.setattr("byhand.corpus.json_values.VALUES", 100_000)
    (tmp_path / "a.jsonl").write_text('{"text": "a", "n": [' + "[]," * 2000 + "[]]}\n")
    with pytest.raises(DataError, match=r":1 is not valid JSON: more than 1,000 values"):
        read(tmp_path / "a.jsonl")
    with pytest.raises(DataError, match=r"a:1: an element of the JSON array is too large"):
        list(elements([("a:1", b"[["), *[("a:1", b"[]," * 9000)] * 20]))
