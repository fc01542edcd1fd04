"""The folder of a process goes with it, however it ends; those of living ones stay."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from gradlint.base import scratch
from gradlint.base.scratch import remove_scratch, scratch_folder

if sys.platform == "win32":
    pytest.skip("files are locked as on Unix", allow_module_level=True)

#: Makes a folder, says which, and waits to be told to end.
OWNER = """
import os, sys
from gradlint.base.scratch import scratch_folder
folder = scratch_folder()
os.mkdir(os.path.join(folder, "deeper"))
open(os.path.join(folder, "deeper", "file"), "w").close()
print(folder, flush=True)
sys.stdin.read()
"""


@pytest.fixture
def where(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of temporary files, for a process that has made nothing yet."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    monkeypatch.setattr(scratch, "_made", None)
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    return tmp_path


def _owner() -> tuple[subprocess.Popen[str], Path]:
    words = [sys.executable, "-c", OWNER]
    owner = subprocess.Popen(words, stdin=-1, stdout=-1, text=True, cwd=Path(__file__).parents[2])
    assert owner.stdout is not None
    return owner, Path(owner.stdout.readline().strip())


def _mark(folder: Path) -> Path:
    return folder.with_name(f"gradlint-{folder.name}")


def test_what_is_left_of_a_killed_process_goes_and_a_living_one_keeps_its_own(where: Path) -> None:
    killed, left = _owner()
    killed.send_signal(signal.SIGKILL)
    killed.communicate()
    assert (left / "deeper" / "file").exists()
    living, kept = _owner()  # which finds what the other one left
    assert [left.exists(), _mark(left).exists()] == [False, False]
    own = Path(scratch_folder())
    assert sorted(where.iterdir()) == sorted([own, _mark(own), kept, _mark(kept)])
    assert (kept / "deeper" / "file").exists()
    living.communicate("")
    assert sorted(where.iterdir()) == sorted([own, _mark(own)])
    remove_scratch(str(own))
    assert list(where.iterdir()) == []


def test_nothing_else_goes(where: Path) -> None:
    """Not what only looks like it: another text, another kind, another owner's, a link."""
    others = {"gradlint-0123abcd": "notes", "gradlint-report": "", "gradlint-0123abcg": ""}
    for name, text in others.items():
        (where / name).write_text(text)
        (where / name.removeprefix("gradlint-")).mkdir()
    precious = where / "precious"
    precious.mkdir()
    linked = where / "00000000"
    linked.symlink_to(precious)
    _mark(linked).write_bytes(scratch._text(str(linked)))
    (where / "gradlint-11111111").symlink_to(precious)
    os.mkfifo(where / "gradlint-22222222")
    (where / "gradlint-33333333").write_text("")  # its process was killed before it had a folder
    own = Path(scratch_folder())
    names = {path.name for path in where.iterdir()} - {own.name, _mark(own).name}
    assert names == {
        *others,
        *(name.removeprefix("gradlint-") for name in others),
        *("precious", "00000000", "gradlint-11111111", "gradlint-22222222"),
    }
    assert (where / "gradlint-0123abcd").read_text() == "notes"


def test_it_is_made_again_where_something_removed_it(where: Path) -> None:
    first = scratch_folder()
    assert scratch_folder() == first
    assert os.stat(first).st_mode & 0o777 == 0o700
    os.rmdir(first)
    second = scratch_folder()
    assert second != first
    assert os.path.isdir(second)


def test_a_process_that_was_taken_for_a_killed_one_makes_another(
    where: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Between the file and its lock, another process that starts may lock it, and remove it."""
    locked = scratch._locked
    taken = []

    def first_too_late(descriptor: int, path: str, *, if_impossible: bool) -> bool:
        if not taken:
            taken.append(path)
            scratch._sweep(str(where))
        return locked(descriptor, path, if_impossible=if_impossible)

    monkeypatch.setattr(scratch, "_locked", first_too_late)
    folder = Path(scratch_folder())
    assert sorted(where.iterdir()) == sorted([folder, _mark(folder)])
    assert taken != [str(_mark(folder))]


def test_nothing_goes_where_files_cant_be_locked(
    where: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(descriptor: int, how: int) -> None:
        raise OSError(95, "Operation not supported")

    monkeypatch.setattr(scratch.fcntl, "flock", refuse)
    first = scratch_folder()
    monkeypatch.setattr(scratch, "_made", None)
    assert scratch_folder() != first
    assert os.path.isdir(first)
