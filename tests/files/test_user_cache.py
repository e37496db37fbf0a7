"""The cache folder: the user's own, or none."""

import os
import sys

import pytest

from byhand.files import user_cache
from byhand.files.user_cache import cache_folder, read_own, write_own

posix = pytest.mark.skipif(os.name == "nt", reason="Windows keeps profiles apart by other means")


@posix
def test_the_folder_follows_the_environment(monkeypatch, tmp_path):
    monkeypatch.setattr(sys, "platform", "linux")
    monkeypatch.delenv("BYHAND_CACHE", raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    assert cache_folder() == tmp_path / ".cache" / "byhand"
    monkeypatch.setenv("XDG_CACHE_HOME", "relative/is/ignored")
    assert cache_folder() == tmp_path / ".cache" / "byhand"
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "xdg"))
    assert cache_folder() == tmp_path / "xdg" / "byhand"
    monkeypatch.setenv("BYHAND_CACHE", str(tmp_path / "own"))
    assert cache_folder() == tmp_path / "own"


def test_without_a_home_there_is_no_folder(monkeypatch):
    def nobody(cls=None):
        raise RuntimeError("Could not determine home directory.")

    for name in ("BYHAND_CACHE", "XDG_CACHE_HOME", "LOCALAPPDATA"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(user_cache.Path, "home", nobody)
    assert cache_folder() is None


def test_what_was_written_is_read(tmp_path):
    path = tmp_path / "made" / "here"
    write_own(path, b"content")
    assert read_own(path, 7) == b"content"
    assert os.listdir(path.parent) == ["here"]
    if os.name != "nt":
        assert path.parent.stat().st_mode & 0o777 == 0o700
        assert path.stat().st_mode & 0o777 == 0o600


@posix
@pytest.mark.parametrize("mode", [0o666, 0o620, 0o602])
def test_a_file_that_others_may_write_is_refused(tmp_path, mode):
    path = tmp_path / "file"
    path.write_bytes(b"content")
    path.chmod(mode)
    with pytest.raises(PermissionError, match="others may write"):
        read_own(path, 100)


@posix
def test_another_users_file_and_folder_are_refused(tmp_path, monkeypatch):
    """Another user's, as seen from here: this process takes itself for user 4321."""
    path = tmp_path / "file"
    path.write_bytes(b"content")
    if os.geteuid() == 0:
        os.chown(path, 1234, 1234)
        os.chown(tmp_path, 1234, 1234)
    monkeypatch.setattr(os, "geteuid", lambda: 4321)
    with pytest.raises(PermissionError, match="another user"):
        read_own(path, 100)
    with pytest.raises(PermissionError, match="another user"):
        write_own(path, b"mine")
    assert path.read_bytes() == b"content"


@posix
def test_a_folder_that_is_a_link_or_open_to_others_is_not_written_to(tmp_path):
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to("real")
    (tmp_path / "open").mkdir()
    (tmp_path / "open").chmod(0o777)
    for name in ("link", "open"):
        with pytest.raises(PermissionError):
            write_own(tmp_path / name / "file", b"mine")
        assert not any((tmp_path / name).iterdir())


def test_a_write_that_fails_leaves_nothing_and_keeps_what_was_there(tmp_path, monkeypatch):
    path = tmp_path / "folder" / "file"
    write_own(path, b"before")

    def full(descriptor):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="No space left"):
        write_own(path, b"after")
    assert os.listdir(path.parent) == ["file"]
    assert path.read_bytes() == b"before"


@posix
def test_what_is_written_is_its_users_alone_whatever_the_umask(tmp_path):
    before = os.umask(0)
    try:
        write_own(tmp_path / "folder" / "file", b"content")
    finally:
        os.umask(before)
    assert read_own(tmp_path / "folder" / "file", 100) == b"content"
