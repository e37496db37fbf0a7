"""Files get their names when they are whole, whatever ends the process that writes them."""

import os
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from byhand.files import writing
from byhand.files.writing import create_all, remove_left_over, replace

CONTENTS = {"a": b"alpha" * 9, "b": b"beta" * 9, "c": b"gamma" * 9}

CALLS = ("mkdir", "write", "link", "rename", "replace", "unlink", "rmdir")  # of the system, which change something


class Killed(BaseException):
    """Simulates SIGKILL: from the chosen call on nothing changes, not even by clean-up."""


def killed(at: int, write: Callable[[], object]) -> bool:
    """Write, until the process is killed before its `at`-th change; return whether it was."""
    left = at

    def counted(call):
        def wrapped(*arguments, **options):
            nonlocal left
            left -= 1
            if left < 0:
                raise Killed
            return call(*arguments, **options)

        return wrapped

    with pytest.MonkeyPatch.context() as patch:
        for name in CALLS:
            patch.setattr(os, name, counted(getattr(os, name)))
        patch.setattr(
            writing, "_held", lambda stage: os.open(os.devnull, os.O_RDONLY)
        )  # a lock goes with its process
        try:
            write()
        except Killed:
            return True
    return False


def there(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir() if path.is_file()}


def test_a_set_of_files_is_there_whole_or_not_at_all_after_a_kill_anywhere(tmp_path):
    """The remains of a killed writer never block the next one; other people's files stay."""
    outcomes = []
    for at in range(100):
        folder = tmp_path / str(at)
        folder.mkdir()
        (folder / "notes").write_bytes(b"mine")
        was_killed = killed(at, lambda: create_all(folder, CONTENTS.items()))  # noqa: B023 (called at once)
        assert all(content == CONTENTS.get(name, b"mine") for name, content in there(folder).items())
        remove_left_over(folder)
        left = there(folder)
        assert left.pop("notes") == b"mine"
        assert left in ({}, CONTENTS)
        outcomes.append(bool(left))
        if not left:
            create_all(folder, CONTENTS.items())
        assert there(folder) == {**CONTENTS, "notes": b"mine"}
        assert len(os.listdir(folder)) == 4
        if not was_killed:
            break
    assert outcomes == sorted(outcomes)
    assert outcomes.index(True) > 7


def test_a_replaced_file_is_the_old_or_the_new_one_after_a_kill_anywhere(tmp_path):
    (tmp_path / "a").write_bytes(b"old")
    seen = []
    for at in range(100):
        was_killed = killed(at, lambda: replace(tmp_path / "a", [b"new"]))
        seen.append(there(tmp_path)["a"])
        if not was_killed:
            break
    assert seen == sorted(seen, reverse=True)
    assert set(seen) == {b"old", b"new"}
    replace(tmp_path / "a", [b"newer"])
    assert os.listdir(tmp_path) == ["a"]


@pytest.mark.skipif(sys.platform == "win32", reason="Windows keeps files that are open")
def test_what_another_process_is_writing_is_no_leftover(tmp_path):
    with writing._stage(tmp_path) as stage:
        (stage / "a").write_bytes(b"half")
        replace(tmp_path / "b", [b"whole"])
        assert (stage / "a").read_bytes() == b"half"
    assert os.listdir(tmp_path) == ["b"]


def test_without_hard_links_a_name_that_is_taken_stays_its_owners(tmp_path, monkeypatch):
    def refuse(*arguments, **options):
        raise PermissionError(1, "Operation not permitted")

    monkeypatch.setattr(os, "link", refuse)
    (tmp_path / "b").write_bytes(b"mine")
    with pytest.raises(FileExistsError, match="b"):
        create_all(tmp_path, [("b", b"new")])
    assert create_all(tmp_path, [("a", b"new")]) == [tmp_path / "a"]
    assert there(tmp_path) == {"a": b"new", "b": b"mine"}


def test_folders_that_only_look_like_leftovers_stay(tmp_path):
    for name in (
        ".writing-novel",
        ".writing-0123456789ABCDEF",
        ".writing-0123456789abcdef0",
        ".written-step-00000001",
    ):
        (tmp_path / name).mkdir()
        (tmp_path / name / "chapter").write_bytes(b"mine")
    (tmp_path / ".writing-0123456789abcdef").write_bytes(b"a file")
    before = sorted(os.listdir(tmp_path))
    remove_left_over(tmp_path)
    assert sorted(os.listdir(tmp_path)) == before


def test_what_is_unfinished_is_taken_back_before_the_process_is_ended(tmp_path):
    """By another thread, at a signal: here between two files."""

    def contents():
        yield "a", b"alpha"
        writing.abandon()
        yield "b", b"beta"

    with pytest.raises(FileNotFoundError):
        create_all(tmp_path, contents())
    assert os.listdir(tmp_path) == []


@pytest.mark.skipif(sys.platform == "win32", reason="files in use cannot be removed there")
@pytest.mark.parametrize("late", [False, True])
def test_a_folder_that_another_process_takes_for_a_left_over_is_made_anew(tmp_path, monkeypatch, late):
    """Between its making and its lock; also when it was opened already."""
    taken, opened = [], os.open

    def slow(path, *arguments, **options):
        descriptor = opened(path, *arguments, **options) if late and not taken else None
        if not taken:
            taken.append(path)
            remove_left_over(tmp_path)
        return descriptor or opened(path, *arguments, **options)

    monkeypatch.setattr(os, "open", slow)
    create_all(tmp_path, CONTENTS.items())
    assert Path(taken[0]).parent == tmp_path
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == CONTENTS
