"""One folder for all that a process of gradlint writes for a while, and an end to what killed ones
left of theirs.

The folder lies below that of temporary files and has a name that says nothing, since operators may
see it. Beside it lies a file ``gradlint-NAME``, which this process holds locked as long as it
lives. The kernel gives the lock up however the process ends, so a file of that kind that can be
locked belongs to nobody any more: its folder goes, and the file after it. This needs neither the
number of a process, which another may have by now or which may be that of another container, nor a
clock.
"""

from __future__ import annotations

import atexit
import os
import re
import secrets
import shutil
import stat
import sys
import tempfile
from contextlib import suppress

from gradlint.base.files import read_regular

if sys.platform != "win32":
    import fcntl

_PREFIX = "gradlint-"

#: Letters and digits of a name, as many as tempfile takes.
_LETTERS = 8
_OF_A_RUN = re.compile(rf"{re.escape(_PREFIX)}([0-9a-f]{{{_LETTERS}}})")

#: Attempts to find a name that nobody has.
_ATTEMPTS = 100

#: The folder of this process, and the process that made it: a fork of it needs one of its own.
_made: tuple[str, int] | None = None


def scratch_folder() -> str:
    """The folder of this process, made at the first call, and again where something removed it.

    The first call also removes what killed processes of this user left.

    Raises:
        OSError: no folder can be made.
    """
    global _made
    if _made is not None and _made[1] == os.getpid() and os.path.isdir(_made[0]):
        return _made[0]
    where = tempfile.gettempdir()
    if _made is None:
        _sweep(where)
    for _ in range(_ATTEMPTS):
        folder = _new_folder(where)
        if folder is not None:
            _made = (folder, os.getpid())
            atexit.register(_end, folder, os.getpid())
            return folder
    raise FileExistsError(f"no folder can be made in {where}")


def remove_scratch(folder: str) -> None:
    """Remove a scratch folder, and the file that says whose it is."""
    shutil.rmtree(folder, ignore_errors=True)
    with suppress(OSError):
        os.unlink(_lock_of(folder))


def _end(folder: str, owner: int) -> None:
    if os.getpid() == owner:
        remove_scratch(folder)


def _lock_of(folder: str) -> str:
    where, name = os.path.split(folder)
    return os.path.join(where, _PREFIX + name)


def _text(folder: str) -> bytes:
    """What the file beside ``folder`` says, by which it is known for what it is."""
    return f"A running gradlint holds {folder}; both go when it ends.\n".encode(errors="replace")


def _new_folder(where: str) -> str | None:
    """A folder in ``where`` that this process holds; None if its name was taken meanwhile."""
    folder = os.path.join(where, secrets.token_hex(_LETTERS // 2))
    try:
        lock = os.open(_lock_of(folder), os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600)
    except FileExistsError:
        return None
    try:
        if not _locked(lock, _lock_of(folder), if_impossible=True):
            raise FileExistsError  # another process took it for one that was left
        os.write(lock, _text(folder))
        os.mkdir(folder, 0o700)
    except FileExistsError:
        os.close(lock)
        return None
    return folder  # the descriptor stays open, and the lock with it


def _locked(descriptor: int, path: str, *, if_impossible: bool) -> bool:
    """Lock an open file, unless another process does; whether it is locked, and still at ``path``.

    Args:
        if_impossible: what to say where files can't be locked; then none is ever swept either.
    """
    if sys.platform == "win32":
        return if_impossible
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError:
        return if_impossible
    try:
        return os.path.samestat(os.fstat(descriptor), os.lstat(path))
    except OSError:
        return False


def _sweep(where: str) -> None:
    """Remove folders in ``where`` whose owners have ended; only those of this user."""
    if sys.platform == "win32":
        return
    with suppress(OSError):
        for name in os.listdir(where):
            found = _OF_A_RUN.fullmatch(name)
            if found:
                with suppress(OSError):
                    _sweep_one(os.path.join(where, found[1]))


def _sweep_one(folder: str) -> None:
    path = _lock_of(folder)
    lock = os.open(path, os.O_RDWR | os.O_NOFOLLOW | os.O_NONBLOCK)
    try:
        status = os.fstat(lock)
        ours = stat.S_ISREG(status.st_mode) and status.st_uid == os.getuid()
        if not ours or not _locked(lock, path, if_impossible=False):
            return
        # It is empty where the process was killed at once, and has made no folder.
        told = read_regular(path, len(_text(folder)))
        if told == _text(folder) and _is_own_folder(folder):
            remove_scratch(folder)
        elif told in (b"", _text(folder)):
            os.unlink(path)
    finally:
        os.close(lock)


def _is_own_folder(folder: str) -> bool:
    with suppress(OSError):
        status = os.lstat(folder)
        return stat.S_ISDIR(status.st_mode) and status.st_uid == os.getuid()
    return False
