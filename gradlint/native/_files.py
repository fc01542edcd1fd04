"""Files shared between processes: digests, files written whole or not at all, and locks."""

from __future__ import annotations

import hashlib
import json
import os
import stat
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, Any

if sys.platform == "win32":
    import msvcrt
else:
    import fcntl

#: Seconds between two attempts to lock; short in comparison with any build.
_PAUSE = 0.2

#: Hexadecimal digits of a digest that names a folder; 64 bits, as few builds share one cache.
_DIGITS = 16


def digest_of_file(path: str | Path) -> str | None:
    """SHA-256 of a file; None where it can't be read."""
    try:
        with open(path, "rb") as file:
            return hashlib.sha256(file.read()).hexdigest()
    except OSError:
        return None


def digest_of(value: Any) -> str:
    """A short digest of a JSON-able value."""
    text = json.dumps(value, sort_keys=True, default=str)
    return hashlib.sha256(text.encode()).hexdigest()[:_DIGITS]


def write_whole(path: Path, text: str) -> None:
    """Write ``text`` to ``path`` so that a reader sees all of it or what was there before."""
    partial = path.with_name(f"{path.name}.{os.getpid()}")
    partial.write_text(text, encoding="utf-8")
    os.replace(partial, path)


def read_json(path: Path) -> dict[str, Any]:
    """The JSON object in ``path``; empty where there is none that can be read."""
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return found if isinstance(found, dict) else {}


def why_not_trusted(folder: Path) -> str:
    """Why others may have written to ``folder``; "" where none could, or there is no such folder.

    As pip does for its cache. Groups that have one member, the user, are taken for private; they
    have the user's number.
    """
    if sys.platform == "win32":
        return ""
    try:
        status = folder.stat()
    except OSError:
        return ""
    user = os.geteuid()
    if status.st_uid not in (user, 0):
        return f"belongs to another user ({status.st_uid})"
    if status.st_mode & stat.S_IWOTH or (
        status.st_mode & stat.S_IWGRP and status.st_gid not in (user, 0)
    ):
        return "can be written to by others"
    return ""


@contextmanager
def locked(path: Path, waiting: Callable[[], None]) -> Iterator[None]:
    """Hold the lock of the file ``path`` in the body; it ends with the process at the latest.

    Args:
        path: made where it is missing.
        waiting: called five times a second while another process holds the lock.

    Raises:
        OSError: the file can't be made.
    """
    with open(path, "a+b") as file:
        while not _taken(file):
            waiting()
            time.sleep(_PAUSE)
        try:
            yield
        finally:
            _release(file)


def _taken(file: IO[bytes]) -> bool:
    try:
        if sys.platform == "win32":
            file.seek(0)
            msvcrt.locking(file.fileno(), msvcrt.LK_NBLCK, 1)
        else:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except (BlockingIOError, PermissionError):
        return False
    return True


def _release(file: IO[bytes]) -> None:
    with suppress(OSError):
        if sys.platform == "win32":
            file.seek(0)
            msvcrt.locking(file.fileno(), msvcrt.LK_UNLCK, 1)
        else:
            fcntl.flock(file, fcntl.LOCK_UN)
