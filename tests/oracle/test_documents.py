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
    with pytest.raises(DataError, match=r"the column 'n' holds int64, no text\. Name another --text-field"):
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
