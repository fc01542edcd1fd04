"""Folders and URLs keep entries; what is not whole is known as such."""

from __future__ import annotations

import hashlib
import sys
from pathlib import Path

import pytest

from gradlint.base.errors import GradlintError
from gradlint.base.text import without_password
from gradlint.cache.store import Damaged, Folder, Store, opened, sealed, unsealed

KEYS = [hashlib.sha256(bytes([number])).hexdigest() for number in range(5)]


@pytest.fixture(params=["folder", "file", "memory"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Store:
    if request.param == "folder":
        return opened(str(tmp_path / "kept"))
    if request.param == "file":
        return opened((tmp_path / "kept").as_uri())
    return opened(f"memory://{tmp_path}")


def test_what_was_written_is_read(store: Store) -> None:
    assert store.read(KEYS) == {}
    store.write(KEYS[0], b"one")
    store.write(KEYS[3], b"three")
    store.write(KEYS[3], b"three again")
    assert store.read(KEYS) == {KEYS[0]: b"one", KEYS[3]: b"three again"}
    store.drop(KEYS[0])
    store.drop(KEYS[1])
    assert store.read(KEYS) == {KEYS[3]: b"three again"}


def test_git_does_not_see_a_folder(tmp_path: Path) -> None:
    opened(str(tmp_path / "kept")).write(KEYS[0], b"one")
    assert (tmp_path / "kept" / ".gitignore").read_text() == "*\n"


def test_what_is_no_file_is_damaged(tmp_path: Path) -> None:
    store = Folder(str(tmp_path))
    (tmp_path / "verdicts" / KEYS[0][:2] / KEYS[0]).mkdir(parents=True)
    assert store.read(KEYS[:1]) == {KEYS[0]: b""}


def test_a_file_is_no_folder(tmp_path: Path) -> None:
    (tmp_path / "x").write_text("")
    with pytest.raises(GradlintError, match="is a file"):
        opened(str(tmp_path / "x"))


def test_an_unknown_protocol() -> None:
    with pytest.raises(GradlintError) as caught:
        opened("nonsense://user:secret@host/x")
    assert "secret" not in str(caught.value)
    assert caught.value.exit_code == 2


def test_without_fsspec(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "fsspec.core", None)
    with pytest.raises(GradlintError) as caught:
        opened("memory://x")
    assert 'pip install "gradlint[cache]"' in caught.value.hint


def test_no_password_is_shown() -> None:
    assert without_password("s3://key:secret@bucket/x") == "s3://***@bucket/x"
    assert without_password("/a/b@c") == "/a/b@c"


def test_damage_is_seen() -> None:
    whole = sealed(b"some content")
    assert unsealed(whole) == b"some content"
    damaged = [whole[:count] for count in range(len(whole))]
    damaged += [
        whole[:place] + bytes([whole[place] ^ 1]) + whole[place + 1 :]
        for place in range(len(whole))
    ]
    for data in damaged:
        with pytest.raises(Damaged):
            unsealed(data)
