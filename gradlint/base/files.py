"""Files that others name: only regular ones of a sensible size are read, and what is written is
written whole or not at all."""

from __future__ import annotations

import errno
import os
import secrets
import stat
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO

_KINDS = (
    (stat.S_ISDIR, "a folder"),
    (stat.S_ISFIFO, "a named pipe"),
    (stat.S_ISSOCK, "a socket"),
    (stat.S_ISCHR, "a device"),
    (stat.S_ISBLK, "a device"),
)


class UnusableFile(OSError):
    """A file that is not read, or not written to, because of what it is; ``strerror`` says why."""

    def __init__(self, why: str, path: str) -> None:
        """``why``: completes the sentence that begins with the file's name."""
        super().__init__(errno.EINVAL, why, path)


def read_regular(path: str | os.PathLike[str], most: int, *, head: int | None = None) -> bytes:
    """The bytes of a regular file.

    A pipe would be waited for and a device such as ``/dev/zero`` never ends, so neither is opened.

    Args:
        path: links are followed.
        most: bytes that the file may have.
        head: read no more than this many bytes, of a file of whatever size.

    Raises:
        UnusableFile: it is no regular file, or too large.
        OSError: it can't be read.
    """
    name = os.fspath(path)
    why = unusable(name, None if head is not None else most)
    if why:
        raise UnusableFile(why, name)
    # It may be another file by now: opened so that nothing is waited for, and looked at again.
    handle = os.open(name, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0))
    with open(handle, "rb") as file:
        if not stat.S_ISREG(os.fstat(handle).st_mode):
            raise UnusableFile("is not a regular file", name)
        if head is not None:
            return file.read(head)
        data = file.read(most + 1)
    if len(data) > most:
        raise UnusableFile(_too_large(most), name)
    return data


def unusable(path: str, most: int | None = None) -> str:
    """Why the file at ``path`` can't be read for what it is: "is a named pipe, not a regular file";
    "" where it can.

    Args:
        path: links are followed.
        most: bytes that it may have; None for any number.

    Raises:
        OSError: there is none.
    """
    status = _status(path)
    for is_kind, words in _KINDS:
        if is_kind(status.st_mode):
            return f"is {words}, not a regular file"
    return _too_large(most) if most is not None and status.st_size > most else ""


def _too_large(most: int) -> str:
    return f"is larger than {most // 1024:,} KiB, the most that is read"


def _status(path: str) -> os.stat_result:
    try:
        return os.stat(path)
    except ValueError as error:  # a NUL in the name
        raise UnusableFile(f"is not the name of a file ({error})", path) from None


# -- writing ---------------------------------------------------------------------------------------


def why_not_writable(path: str) -> tuple[str, str]:
    """Why no file can be written to ``path``, and what to do; two empty texts where one can.

    A file is made in its folder for a moment, so that what forbids it is found before the work is
    done that it will hold.
    """
    try:
        return _why_not_writable(path)
    except OSError as error:
        return error.strerror or str(error), "name another file"
    except ValueError as error:  # a NUL in the name
        return f"is not the name of a file ({error})", "name another file"


def _why_not_writable(path: str) -> tuple[str, str]:
    if path.endswith(("/", os.sep)) or os.path.isdir(path):
        return "is a folder", "name a file in it"
    folder = os.path.dirname(os.path.realpath(path))
    if not os.path.isdir(folder):
        return f"there is no folder {folder}", "create it first"
    try:
        status = _status(path)
    except FileNotFoundError:
        status = None
    mode = status.st_mode if status is not None else stat.S_IFREG
    why, step = "", ""
    if stat.S_ISSOCK(mode) or stat.S_ISBLK(mode):
        why, step = "is a socket or a disk, not a file", "name a file"
    elif status is not None and not os.access(path, os.W_OK):
        why, step = "is read-only", "name another file, or allow writing to it"
    elif stat.S_ISREG(mode):
        why, step = _why_no_new_file(folder, exists=status is not None)
    return why, step


def _why_no_new_file(folder: str, *, exists: bool) -> tuple[str, str]:
    try:
        handle, partial = _partial(folder)
    except OSError as error:
        if exists and error.errno in _IN_PLACE:
            return "", ""
        why = error.strerror or str(error)
        return f"no file can be made in {folder}: {why}", "name a file in another folder"
    os.close(handle)
    os.unlink(partial)
    return "", ""


#: What forbids to make or to replace a file beside one that may itself be written to: a folder of
#: someone else, or a single file that is mounted. Then it is written in place.
_IN_PLACE = (errno.EACCES, errno.EPERM, errno.EROFS, errno.EBUSY)


#: Endings of what people write and gradlint reads: operators and their inputs, specs, settings,
#: sources of extensions. No report is kept under one of these.
_WRITTEN_BY_HAND = (
    *(".c", ".cc", ".cpp", ".cu", ".cuh", ".cxx", ".h", ".hpp"),
    *(".cfg", ".ini", ".ipynb", ".py", ".pyi", ".pyx", ".toml", ".yaml", ".yml"),
)


def written_by_hand(path: str) -> str:
    """The file that a report at ``path`` would take the place of, if its name says that it is
    source, a spec or settings; links are followed. "" where nothing is lost."""
    try:
        real = os.path.realpath(path)
        found = stat.S_ISREG(os.stat(real).st_mode)
    except (OSError, ValueError):
        return ""
    return real if found and os.path.splitext(real)[1].lower() in _WRITTEN_BY_HAND else ""


def takes_several(path: str) -> bool:
    """Whether more than one report may be written to ``path``: a pipe, a device, or the file that
    the standard output goes to."""
    try:
        status = os.stat(path)
    except (OSError, ValueError):
        return False
    return not stat.S_ISREG(status.st_mode) or _own_stream(status) is not None


def write_whole(path: str | os.PathLike[str], parts: Iterable[str | bytes]) -> None:
    """Write ``parts`` so that a reader sees all of them or what was there before.

    They go to a new file in the same folder, which takes the place of the old one and has its
    permissions. A link stays, and what it leads to is replaced. Pipes and devices, and files in
    folders where no file may be made, are written to as they are.

    Args:
        path: of the file.
        parts: texts, written as UTF-8, or bytes.

    Raises:
        OSError: they can't be written; the old file is as it was.
    """
    name = os.fspath(path)
    real = os.path.realpath(name)
    try:
        status = _status(name)
    except FileNotFoundError:
        status = None
    if status is not None:
        number = _own_stream(status)
        if number is not None:
            with open(os.dup(number), "wb") as file:
                _pour(file, parts)
            return
        if not stat.S_ISREG(status.st_mode):
            with open(name, "wb") as file:
                _pour(file, parts)
            return
    try:
        handle, partial = _partial(os.path.dirname(real))
    except OSError as error:
        if status is None or error.errno not in _IN_PLACE:
            raise
        with open(real, "wb") as file:
            _pour(file, parts)
        return
    with _removed(partial):
        with open(handle, "wb") as file:
            if status is not None:
                _like(file, status)
            _pour(file, parts)
            file.flush()
            os.fsync(handle)
        try:
            os.replace(partial, real)
        except OSError as error:
            if status is None or error.errno not in _IN_PLACE:
                raise
            with open(real, "wb") as target, open(partial, "rb") as source:
                for part in iter(lambda: source.read(2**20), b""):
                    target.write(part)
            return
    _remembered(os.path.dirname(real))


def _partial(folder: str) -> tuple[int, str]:
    """A new file in ``folder``, with the permissions that new files have: descriptor and path."""
    path = os.path.join(folder, f".gradlint-{secrets.token_hex(8)}.tmp")
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0)
    return os.open(path, flags, 0o666), path


def _pour(file: IO[bytes], parts: Iterable[str | bytes]) -> None:
    for part in parts:
        file.write(part.encode("utf-8", "backslashreplace") if isinstance(part, str) else part)


def _like(file: IO[bytes], status: os.stat_result) -> None:
    """Give ``file`` the permissions, and where that is allowed the owner, of another."""
    if hasattr(os, "fchown"):
        with suppress(OSError):
            os.fchown(file.fileno(), status.st_uid, status.st_gid)
    if hasattr(os, "fchmod"):
        os.fchmod(file.fileno(), stat.S_IMODE(status.st_mode))


@contextmanager
def _removed(path: str) -> Iterator[None]:
    try:
        yield
    finally:
        with suppress(OSError):
            Path(path).unlink(missing_ok=True)


def _remembered(folder: str) -> None:
    """Make the new name last, too; not every system can."""
    if sys.platform == "win32":
        return
    with suppress(OSError):
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)


def _own_stream(status: os.stat_result) -> int | None:
    """The descriptor of the standard output or error where that is the file of ``status``, as
    ``/dev/stdout`` is: replacing it would take it from the program that reads it."""
    for number in (1, 2):
        with suppress(OSError):
            own = os.fstat(number)
            if not stat.S_ISCHR(own.st_mode) and os.path.samestat(own, status):
                return number
    return None
