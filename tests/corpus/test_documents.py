"""Documents: what files hold in every form, and one line for what they do not."""

import codecs
import gzip
import io
import json
import logging
import random
import sys

import pytest

from byhand.corpus.documents import NoTextError, Reading
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
def test_other_encodings_are_named(tmp_path, encoding):
    text = {"cp1252": "Über – façade", "gb18030": "手算", "shift_jis": "手で計算"}[encoding] * 1000
    (tmp_path / "a.txt").write_bytes(text.encode(encoding))
    assert read(tmp_path / "a.txt", encoding=encoding) == [text]
    with pytest.raises(
        DataError, match=r"a\.txt is not UTF-8 at byte 0\. Name its encoding, as in --encoding cp1252"
    ):
        open_text(str(tmp_path / "a.txt"))


def test_the_error_names_the_first_bad_byte_wherever_blocks_end(tmp_path):
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
        ("{", r":2 is no JSON: .*\. Mend the line"),
        ("[" * 100_000, r":2 is no JSON: nested too deep"),
        ("[1]", r":2 is no object of JSON\. Write lines like \{\"text\": \"…\"\}"),
        ('{"body": "x", "id": 3}', r":2 has no field 'text' but 'body', 'id'\. Name the one .* --text-field"),
        ('{"text": "a", "n": ' + "1" * 5000 + "}", r":2 is no JSON: Exceeds the limit"),
        ('{"text": 5}', r":2: 'text' is no text"),
        ('{"text": "a\\u0000b"}', r":2: 'text' holds a NUL character"),
        ('{"text": "\\ud800"}', r":2: 'text' holds half a character"),
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
    with pytest.raises(NoTextError, match=r"b\.png is no text: .*--encoding bytes"):
        open_text(str(tmp_path / "b.png"))
    assert open_text(str(tmp_path / "b.png"), Reading(encoding="bytes")).content[:].tobytes() == content
    (tmp_path / "a.txt").write_text("one")
    (tmp_path / "c.txt").write_text("two")
    assert open_text(str(tmp_path)).content[:].tobytes() == b"one\0two\0"
    assert f"skipped, no text: {tmp_path / 'b.png'}" in caplog.text


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
    with pytest.raises(DataError, match=r"a\.jsonl is not UTF-8 at byte 10\. Write JSON lines in UTF-8"):
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
    with pytest.raises(DataError, match=r"a\.txt holds half a character before byte 5"):
        open_text(str(tmp_path / "a.txt"), Reading(encoding="utf-7"))


def test_a_field_without_effect_is_refused(tmp_path):
    (tmp_path / "a.txt").write_text("one")
    (tmp_path / "b.jsonl").write_text('{"body": "two"}')
    with pytest.raises(DataError, match=r"--text-field changes nothing: .*a\.txt has no JSON lines and no parquet"):
        open_text(str(tmp_path / "a.txt"), Reading("body"))
    assert open_text(str(tmp_path), Reading("body")).content[:].tobytes() == b"one\0two\0"


def test_bytes_with_the_sign_that_ends_documents_stand_alone(tmp_path):
    """Else a NUL in the first would be taken for its end, and training would leave out what is behind it."""
    for name in "ab":
        (tmp_path / name).write_bytes(b"a\0b\0")
    with pytest.raises(DataError, match=r"a holds a NUL, which is the end of a document .*Name it alone"):
        open_text(str(tmp_path), Reading(encoding="bytes"))
    (tmp_path / "b").unlink()
    assert open_text(str(tmp_path), Reading(encoding="bytes")).content[:].tobytes() == b"a\0b\0"


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
