"""Files and JSON from strangers: refused by what they are, before they are read or parsed."""

import os
import sys
import tracemalloc

import pytest

from byhand.errors import DataError
from byhand.files.reading import parse_integer, parse_json, read_regular
from hostile.outcome import soon


def test_a_regular_file_within_its_bound_is_read_whole(tmp_path):
    path = tmp_path / "file"
    path.write_bytes(b"12345")
    assert read_regular(path, 5) == b"12345"
    with pytest.raises(OSError, match="more than 4 bytes"):
        read_regular(path, 4)


@pytest.mark.skipif(sys.platform == "win32", reason="needs FIFOs and devices")
def test_a_fifo_and_a_device_are_refused_at_once(tmp_path):
    os.mkfifo(tmp_path / "fifo")
    (tmp_path / "zero").symlink_to("/dev/zero")
    for name in ("fifo", "zero"):
        with pytest.raises(OSError, match="not a regular file"):
            read_regular(tmp_path / name, 1000)


def test_a_folder_a_missing_file_and_a_nul_are_os_errors(tmp_path):
    for path, why in ((tmp_path, "directory"), (tmp_path / "missing", "No such file"), ("a\0b", "null byte")):
        with pytest.raises(OSError, match=f"{why}.*{str(path)[-1]}") as caught:
            read_regular(path, 10)
        assert caught.value.filename == str(path)


@pytest.mark.parametrize(
    "content", ["[" * 100_000, '{"a":' * 33 + "1" + "}" * 33, "NaN", "-Infinity", "1e999", "1" * 5000, "{", '"', "\\"]
)
def test_hostile_json_is_a_value_error(content):
    for given in (content, content.encode()):
        with pytest.raises(ValueError, match=r"nested|number|digits|Expecting|Unterminated"):
            parse_json(given)


@pytest.mark.parametrize("encoding", ["utf-16-le", "utf-32-be"])
def test_bounds_are_those_of_utf_8(encoding):
    hidden = '{"\u2200":' + "[" * 900 + "]" * 900 + "}"  # the character has a byte that is a quotation mark
    with pytest.raises(ValueError, match=r"decode|Expecting|nested"):
        parse_json(hidden.encode(encoding))


@pytest.mark.parametrize(
    "content", ['{"a": 1, "a": 1}', '[{"b": {"c": 1, "a": 2, "a": 3}}]', r'{"a": 1, "\u0061": 2}']
)
def test_a_key_that_stands_twice_is_refused_as_in_toml(content):
    with pytest.raises(ValueError, match="the key 'a' twice"):
        parse_json(content)


def test_a_repeated_key_among_many_takes_linear_time():
    with soon("a repeated key"), pytest.raises(ValueError, match="the key 'k0' twice"):
        parse_json("{" + ",".join(f'"k{i}":0' for i in range(200_000)) + ',"k0":0}')


def test_brackets_and_digits_inside_strings_do_not_count():
    assert parse_json('{"a": "[[[[[\\"{{{", "b": [1.5]}', depth=2) == {"a": '[[[[["{{{', "b": [1.5]}
    assert parse_json('"' + "1" * 5000 + '"') == "1" * 5000


def test_escaped_quotes_without_an_end_take_linear_time():
    with soon("escaped quotes"), pytest.raises(ValueError, match="Unterminated"):
        parse_json('"' + '\\"' * 500_000)


def test_integers_are_bounded_before_they_are_converted():
    assert parse_integer("-007", "an index") == -7
    for written in ("1" * 5000, "1.5", "", "²", "1_0"):
        with pytest.raises(DataError, match="an index"):
            parse_integer(written, "an index")


def test_a_generous_bound_allocates_nothing(tmp_path):
    (tmp_path / "file").write_bytes(b"12345")
    tracemalloc.start()
    assert read_regular(tmp_path / "file", 1 << 40) == b"12345"
    assert tracemalloc.get_traced_memory()[1] < 4e6
    tracemalloc.stop()


@pytest.mark.skipif(not os.path.exists("/proc/self/status"), reason="there is no /proc")
def test_a_file_that_does_not_tell_its_size_is_read_to_its_end():
    assert b"Pid:" in read_regular("/proc/self/status", 1 << 20)
    with pytest.raises(OSError, match="more than 10 bytes"):
        read_regular("/proc/self/status", 10)
