from __future__ import annotations

import errno
import os
import socket
import stat
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from gradlint.base import files
from gradlint.base.files import UnusableFile, read_regular, why_not_writable, write_whole

if sys.platform == "win32":
    pytest.skip("special files are made as on Unix", allow_module_level=True)


# -- reading ---------------------------------------------------------------------------------------


def test_a_regular_file_is_read_up_to_its_limit(tmp_path: Path) -> None:
    path = tmp_path / "a.py"
    path.write_bytes(b"x" * 2048)
    assert read_regular(path, 2048) == b"x" * 2048
    with pytest.raises(UnusableFile, match="larger than 1 KiB"):
        read_regular(path, 1024)
    assert read_regular(path, 1, head=3) == b"xxx"


def test_a_link_is_followed(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"text")
    (tmp_path / "b").symlink_to("a")
    assert read_regular(tmp_path / "b", 10) == b"text"


@pytest.mark.parametrize("kind", ["pipe", "device", "folder", "socket"])
def test_special_files_are_refused_at_once(
    tmp_path: Path, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "a.py"
    if kind == "pipe":
        os.mkfifo(path)
    elif kind == "device":
        path.symlink_to("/dev/zero")
    elif kind == "folder":
        path.mkdir()
    else:
        with socket.socket(socket.AF_UNIX) as made:
            monkeypatch.chdir(tmp_path)  # the names of sockets are short
            made.bind("a.py")
    for head in (None, 10):
        with pytest.raises(UnusableFile, match=f"is a (named )?{kind}, not a regular file"):
            read_regular(path, 10, head=head)


def test_a_name_with_nul_is_an_error_of_the_file(tmp_path: Path) -> None:
    with pytest.raises(OSError, match="null"):
        read_regular("a\0b", 10)


# -- writing ---------------------------------------------------------------------------------------


def _left(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def test_a_new_file_has_the_usual_permissions(tmp_path: Path) -> None:
    before = os.umask(0o027)
    try:
        write_whole(tmp_path / "r.json", ["a", "é\n", b"\xff"])
    finally:
        os.umask(before)
    assert (tmp_path / "r.json").read_bytes() == b"a\xc3\xa9\n\xff"
    assert stat.S_IMODE((tmp_path / "r.json").stat().st_mode) == 0o640
    assert _left(tmp_path) == ["r.json"]


def test_an_old_file_keeps_its_permissions(tmp_path: Path) -> None:
    path = tmp_path / "r.json"
    path.write_text("old")
    path.chmod(0o604)
    write_whole(path, ["new"])
    assert path.read_text() == "new"
    assert stat.S_IMODE(path.stat().st_mode) == 0o604


def test_a_link_stays_one(tmp_path: Path) -> None:
    (tmp_path / "there").mkdir()
    (tmp_path / "r.json").symlink_to("there/real.json")
    write_whole(tmp_path / "r.json", ["one"])
    write_whole(tmp_path / "r.json", ["two"])
    assert (tmp_path / "r.json").is_symlink()
    assert (tmp_path / "there" / "real.json").read_text() == "two"
    assert _left(tmp_path / "there") == ["real.json"]


def test_a_full_disk_leaves_the_old_file(tmp_path: Path) -> None:
    path = tmp_path / "r.json"
    path.write_text("old")

    def parts() -> Iterator[str]:
        yield "new"
        raise OSError(errno.ENOSPC, "No space left on device")

    with pytest.raises(OSError, match="No space left"):
        write_whole(path, parts())
    assert path.read_text() == "old"
    assert _left(tmp_path) == ["r.json"]


def test_an_interruption_leaves_the_old_file(tmp_path: Path) -> None:
    path = tmp_path / "r.json"
    path.write_text("old")

    def parts() -> Iterator[str]:
        yield "new"
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        write_whole(path, parts())
    assert path.read_text() == "old"
    assert _left(tmp_path) == ["r.json"]


def test_a_pipe_is_written_to(tmp_path: Path) -> None:
    path = tmp_path / "pipe"
    os.mkfifo(path)
    got: list[bytes] = []
    reader = threading.Thread(target=lambda: got.append(path.read_bytes()))
    reader.start()
    write_whole(path, ["a", "b"])
    reader.join(20)
    assert got == [b"ab"]
    assert stat.S_ISFIFO(path.stat().st_mode)


def test_devices_and_the_standard_output_are_written_to(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    write_whole("/dev/null", ["gone"])
    assert stat.S_ISCHR(os.stat("/dev/null").st_mode)
    write_whole("/dev/stdout", ["seen "])
    write_whole("/dev/stdout", ["twice"])
    assert capfd.readouterr().out == "seen twice"


def test_where_no_file_can_be_made_the_old_one_is_written_in_place(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Permissions would not stop root, who may run this.
    path = tmp_path / "r.json"
    path.write_text("old and longer")

    def refused(folder: str) -> tuple[int, str]:
        raise PermissionError(errno.EACCES, "Permission denied", folder)

    monkeypatch.setattr(files, "_partial", refused)
    assert why_not_writable(str(path)) == ("", "")
    write_whole(path, ["new"])
    assert path.read_text() == "new"
    why, step = why_not_writable(str(tmp_path / "other.json"))
    assert why == f"no file can be made in {tmp_path}: Permission denied"
    assert step == "name a file in another folder"
    with pytest.raises(PermissionError):
        write_whole(tmp_path / "other.json", ["new"])


def test_a_single_file_that_is_mounted_is_written_in_place(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "r.json"
    path.write_text("old and longer")

    def busy(source: str, target: str) -> None:
        raise OSError(errno.EBUSY, "Device or resource busy")

    monkeypatch.setattr(os, "replace", busy)
    write_whole(path, ["new"])
    assert path.read_text() == "new"
    assert _left(tmp_path) == ["r.json"]


def test_what_can_not_be_written_is_known_before(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    os.mkfifo(tmp_path / "pipe")
    assert why_not_writable(str(tmp_path / "new.json")) == ("", "")
    assert why_not_writable(str(tmp_path / "file")) == ("", "")
    assert why_not_writable(str(tmp_path / "pipe")) == ("", "")
    assert why_not_writable("/dev/stdout") == why_not_writable("/dev/null") == ("", "")
    assert why_not_writable(str(tmp_path)) == ("is a folder", "name a file in it")
    assert why_not_writable(f"{tmp_path}/new/") == ("is a folder", "name a file in it")
    missing = why_not_writable(str(tmp_path / "no" / "r.json"))
    assert missing == (f"there is no folder {tmp_path}/no", "create it first")
    assert why_not_writable(str(tmp_path / ("x" * 300)))[0] == "File name too long"
    assert "null" in why_not_writable("a\0b")[0]
    assert _left(tmp_path) == ["file", "pipe"]


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_what_is_read_only_is_known_before(tmp_path: Path) -> None:
    (tmp_path / "r.json").write_text("x")
    (tmp_path / "r.json").chmod(0o444)
    assert why_not_writable(str(tmp_path / "r.json"))[0] == "is read-only"
