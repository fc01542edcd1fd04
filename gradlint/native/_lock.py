"""A lock between processes that ends with its holder, however that ends."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO

#: Seconds between two attempts; short beside any build.
_PAUSE = 0.2


@contextmanager
def locked(path: Path, waiting: Callable[[], None]) -> Iterator[None]:
    """Hold the lock of the file ``path`` in the body.

    Args:
        path: made where it is missing.
        waiting: called every moment while another process holds the lock.

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
            import msvcrt

            file.seek(0)
            msvcrt.locking(file.fileno(), msvcrt.LK_NBLCK, 1)
        else:
            import fcntl

            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except (BlockingIOError, PermissionError):
        return False
    return True


def _release(file: IO[bytes]) -> None:
    with suppress(OSError):
        if sys.platform == "win32":
            import msvcrt

            file.seek(0)
            msvcrt.locking(file.fileno(), msvcrt.LK_UNLCK, 1)
        else:
            import fcntl

            fcntl.flock(file, fcntl.LOCK_UN)
