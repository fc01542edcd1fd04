"""Where verdicts are kept: a folder, or any URL that fsspec knows.

What is read is checked before it is used: whoever may write there may write anything, and a disk or
a network may give back half of what was written.
"""

from __future__ import annotations

import hashlib
import importlib
import os
from collections.abc import Sequence
from contextlib import suppress
from typing import Any, Protocol

from gradlint.base.errors import GradlintError
from gradlint.base.files import read_regular, write_whole
from gradlint.base.text import error_line, without_password

#: What every entry begins with; another format has another one.
_MAGIC = b"gradlint verdict 1\n"

_HASH_BYTES = 32

#: Bytes of an entry (heuristic: reports of operators with a thousand checks have 500 kB).
MOST_BYTES = 2**25

#: Below the folder or URL that the user names.
_BELOW = "verdicts"

_OPTION = "--cache"


class Damaged(Exception):
    """An entry that is not what was written."""


class Store(Protocol):
    """Keeps bytes under keys."""

    def read(self, keys: Sequence[str]) -> dict[str, bytes]:
        """What is there of ``keys``.

        Raises:
            OSError: it can't be reached.
        """

    def write(self, key: str, data: bytes) -> None:
        """Keep ``data``, whole or not at all.

        Raises:
            OSError: it can't be written.
        """

    def drop(self, key: str) -> None:
        """Remove what is kept under ``key``, if that can be done."""


def opened(place: str) -> Store:
    """The store at ``place``.

    Raises:
        GradlintError: it can't be used at all.
    """
    if "://" not in place:
        return Folder(place)
    return Remote(place)


def sealed(body: bytes) -> bytes:
    """``body`` with what shows later whether it is whole."""
    return _MAGIC + hashlib.sha256(body).digest() + body


def unsealed(data: bytes) -> bytes:
    """What was :func:`sealed`.

    Raises:
        Damaged: it is not that.
    """
    head = len(_MAGIC) + _HASH_BYTES
    if not data.startswith(_MAGIC) or len(data) < head:
        raise Damaged("it does not begin as entries do")
    body = data[head:]
    if hashlib.sha256(body).digest() != data[len(_MAGIC) : head]:
        raise Damaged("its content does not match its checksum")
    return body


class Folder:
    """Entries as files in folders named after the first two letters of their keys."""

    def __init__(self, path: str) -> None:
        if os.path.exists(path) and not os.path.isdir(path):
            raise GradlintError(
                f"{path} is a file", place=_OPTION, hint="name a folder, which is made if need be"
            )
        self._top = path
        self._folder = os.path.join(path, _BELOW)

    def read(self, keys: Sequence[str]) -> dict[str, bytes]:
        """What is there; a file that can't be read counts as damaged when it is unsealed."""
        found = {}
        for key in keys:
            try:
                found[key] = read_regular(self._path(key), MOST_BYTES)
            except (FileNotFoundError, NotADirectoryError):
                continue
            except OSError:
                found[key] = b""
        return found

    def write(self, key: str, data: bytes) -> None:
        """Keep it, beside a .gitignore where this makes the folder."""
        path = self._path(key)
        made = not os.path.isdir(self._folder)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        ignore = os.path.join(self._top, ".gitignore")
        if made and not os.path.exists(ignore):
            write_whole(ignore, ["*\n"])
        write_whole(path, [data])

    def drop(self, key: str) -> None:
        """Remove the file."""
        with suppress(OSError):
            os.unlink(self._path(key))

    def _path(self, key: str) -> str:
        return os.path.join(self._folder, key[:2], key)


class Remote:
    """Entries at a URL, by fsspec."""

    def __init__(self, url: str) -> None:
        try:
            core: Any = importlib.import_module("fsspec.core")
        except ImportError:
            raise GradlintError(
                "a URL needs fsspec, which is not installed",
                place=_OPTION,
                hint='run `pip install "gradlint[cache]"`, or name a folder',
            ) from None
        try:
            self._files, root = core.url_to_fs(url)
        except Exception as error:  # of any of its many implementations
            raise GradlintError(
                f"{without_password(url)} can't be opened: {without_password(error_line(error))}",
                place=_OPTION,
                hint="fsspec lists the protocols that it knows, and which package each needs",
            ) from None
        self._root = f"{root.rstrip('/')}/{_BELOW}"

    def read(self, keys: Sequence[str]) -> dict[str, bytes]:
        """What is there, asked for in one go where the protocol can."""
        paths = {self._path(key): key for key in keys}
        try:
            found = self._files.cat(list(paths), on_error="return") if paths else {}
        except FileNotFoundError:
            return {}
        except Exception as error:
            raise OSError(without_password(error_line(error))) from error
        entries = {}
        for path, data in found.items():
            key = path.rpartition("/")[2]
            if isinstance(data, bytes):
                entries[key] = data
            elif not isinstance(data, (FileNotFoundError, NotADirectoryError, KeyError)):
                raise OSError(without_password(error_line(data)))
        return entries

    def write(self, key: str, data: bytes) -> None:
        """Keep it. A write that breaks off leaves what does not match its checksum."""
        path = self._path(key)
        try:
            self._files.makedirs(path.rpartition("/")[0], exist_ok=True)
            self._files.pipe_file(path, data)
        except Exception as error:
            raise OSError(without_password(error_line(error))) from error

    def drop(self, key: str) -> None:
        """Remove it."""
        with suppress(Exception):
            self._files.rm_file(self._path(key))

    def _path(self, key: str) -> str:
        return f"{self._root}/{key[:2]}/{key}"
