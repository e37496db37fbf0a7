"""Parquet and zstandard: what their own libraries write is read back, and what they find damaged is named."""

import json
import os
import sys

import pytest

from byhand.corpus.documents import Reading
from byhand.errors import DataError

zstd = pytest.importorskip("compression.zstd" if sys.version_info >= (3, 14) else "backports.zstd")
pyarrow = pytest.importorskip("pyarrow")
parquet = pytest.importorskip("pyarrow.parquet")
pytestmark = pytest.mark.oracle
TEXTS = [f"document {i}, 文本" for i in range(3000)] + [""]


def read(path, **how):
    """Return the documents of a file, each joined."""
    return [b"".join(document.blocks).decode() for document in Reading(**how).documents(path)]


@pytest.mark.parametrize("kind", ["string", "large_string"])
def test_parquet(tmp_path, kind):
    column = pyarrow.array([*TEXTS, None], getattr(pyarrow, kind)())
    table = pyarrow.table({"text": column, "n": list(range(len(column)))})
    parquet.write_table(table, tmp_path / "a.parquet", row_group_size=700)
    assert read(tmp_path / "a.parquet") == [*TEXTS, ""]
    with pytest.raises(DataError, match=r"the column 'n' holds int64, not text\. Name another --text-field"):
        read(tmp_path / "a.parquet", text_field="n")
    with pytest.raises(DataError, match="has no field 'body' but 'text', 'n'"):
        read(tmp_path / "a.parquet", text_field="body")
    whole = (tmp_path / "a.parquet").read_bytes()
    for damaged in (whole[:-20], whole[:4] + bytes(len(whole) - 4)):
        (tmp_path / "b.parquet").write_bytes(damaged)
        with pytest.raises(DataError, match=r"cannot read .*b\.parquet as parquet: "):
            read(tmp_path / "b.parquet")


def test_columns_as_tables_of_other_libraries_have_them(tmp_path):
    """Categories; a point in a name, beside a column of structures; a file whose name is no UTF-8."""
    texts, path = pyarrow.array(["a", "b", "a"]), tmp_path / os.fsdecode(b"\xff.parquet")
    with open(path, "wb") as file:
        parquet.write_table(
            pyarrow.table({"m": pyarrow.array([{"t": "no"}] * 3), "m.t": texts, "c": texts.dictionary_encode()}), file
        )
    assert read(path, text_field="m.t") == read(path, text_field="c") == ["a", "b", "a"]
    parquet.write_table(pyarrow.Table.from_arrays([texts, texts], names=["text", "text"]), tmp_path / "a")
    with pytest.raises(DataError, match="a has two columns 'text'"):
        read(tmp_path / "a")


def test_zstandard(tmp_path):
    (tmp_path / "a").write_bytes(zstd.compress(b"one ") + zstd.compress(b"two"))
    assert read(tmp_path / "a") == ["one two"]
    lines = "\n".join(json.dumps({"text": text}) for text in TEXTS)
    (tmp_path / "a.jsonl.zst").write_bytes(
        whole := zstd.compress(lines.encode(), options={zstd.CompressionParameter.checksum_flag: 1})
    )
    assert read(tmp_path / "a.jsonl.zst") == TEXTS
    for damaged in (whole[:50] + bytes(50) + whole[100:], whole[:-9], whole[:60]):
        (tmp_path / "a.jsonl.zst").write_bytes(damaged)
        with pytest.raises(DataError, match=r"its compressed data is damaged"):
            read(tmp_path / "a.jsonl.zst")


@pytest.mark.parametrize("begin", [b"", b"\x50\x2a\x4d\x18\4\0\0\0\x23\0\0\0"], ids=["frames", "skippable first"])
def test_all_frames_are_read_and_none_that_holds_no_text(tmp_path, begin):
    """As pzstd and seekable zstandard write them."""
    whole = b"".join(begin + zstd.compress(f'{{"text": "{text}"}}\n'.encode()) for text in ("one", "two"))
    (tmp_path / "a.jsonl.zst").write_bytes(whole + b"\x5e\x2a\x4d\x18\5\0\0\0index")
    assert read(tmp_path / "a.jsonl.zst") == ["one", "two"]


def test_values_that_a_dictionary_repeats_are_decoded_a_few_at_a_time_and_a_column_that_unpacks_is_refused(
    tmp_path, monkeypatch
):
    long = "a" * (1 << 22)
    monkeypatch.setattr("byhand.corpus.fields.DECODED", 1 << 24)
    repeated = pyarrow.DictionaryArray.from_arrays(pyarrow.array([0] * 64, pyarrow.int32()), pyarrow.array([long]))
    for name, column in (("dictionary", repeated), ("plain", pyarrow.array([long] * 64))):
        parquet.write_table(pyarrow.table({"text": column}), tmp_path / name, compression="zstd")
    del repeated, column
    most, sizes = 0, []
    for document in Reading().documents(tmp_path / "dictionary"):
        sizes += map(len, document.blocks)
        most = max(most, pyarrow.total_allocated_bytes())
    assert sizes == [1 << 22] * 64
    assert most < 64 << 20
    monkeypatch.setattr("byhand.corpus.fields.UNPACKED", 1 << 20)
    with pytest.raises(DataError, match=r"plain: its [0-9,]+ bytes unpack to [0-9,]+\. Write smaller row groups"):
        read(tmp_path / "plain")


@pytest.mark.parametrize(
    ("encoding", "text"),
    [
        ("cp1252", "L’école était fermée ; où vont les élèves ? À la plage, peut-être, ou à la forêt."),
        ("cp1252", "Más allá del río había un camino que subía a la montaña, donde vivía el señor Núñez."),
        ("cp1250", "Zażółć gęślą jaźń, a potem idź do domu i śpij spokojnie, bo jutro będzie świt."),
        ("cp1251", "Съешь же ещё этих мягких французских булок, да выпей чаю."),
        ("koi8-r", "Съешь же ещё этих мягких французских булок, да выпей чаю."),
        ("gb18030", "手算一个神经网络，并不比想象的更难。我们从一个矩阵开始，逐步计算。"),
        ("big5", "手算一個神經網路，並不比想像的更難。我們從一個矩陣開始。"),
        ("shift_jis", "吾輩は猫である。名前はまだ無い。どこで生れたかとんと見当がつかぬ。"),
        ("cp949", "나는 고양이다. 이름은 아직 없다. 어디서 태어났는지 모른다."),
        ("utf-16-le", "A text without a mark, as some programs of Windows write it."),
    ],
)
def test_an_encoding_is_detected(tmp_path, encoding, text):
    pytest.importorskip("chardet")
    (tmp_path / "a.txt").write_bytes(f"{text}\n".encode(encoding) * 9)
    assert read(tmp_path / "a.txt") == [f"{text}\n" * 9]
