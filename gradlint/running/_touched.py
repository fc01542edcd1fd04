"""What a worker reads, as Python's audit hooks see it: a verdict that is kept depends on it.

A hook can't be taken away again, so it is added only to workers whose verdict may be kept. It sees
files that Python opens, libraries that are loaded, and doors through which something may come that
is no file: the network, programs, listings of folders. It does not see what C code opens by itself;
what of that is mapped into memory, as libraries are, is found at the end.
"""

from __future__ import annotations

import importlib.util
import os
import re
import site
import sys
import sysconfig
from contextlib import suppress
from functools import cache
from types import FrameType
from typing import Any

#: Files that a worker may read before its verdict is no longer kept (heuristic: a package that is
#: not installed has some hundred modules).
MOST_FILES = 5_000

_LISTS = "lists a folder"

#: Events after which it is not known what the operator depends on, in words that complete "it …".
_DOORS = {
    "socket.connect": "uses the network",
    "socket.getaddrinfo": "uses the network",
    "sqlite3.connect": "reads a database",
    "os.system": "runs a program",
    "os.exec": "runs a program",
    "os.posix_spawn": "runs a program",
    "os.spawn": "runs a program",
    "os.fork": "starts a process",
    "os.forkpty": "starts a process",
    "subprocess.Popen": "runs a program",
    "os.listdir": _LISTS,
    "os.scandir": _LISTS,
}

#: Doors that torch and its compilers use for themselves, where nothing of the operator's comes in.
_OF_COMPILERS = ("runs a program", "starts a process", _LISTS)

#: Python's search for modules and packages, and what stands for it.
_IMPORTLIB = os.path.join(sysconfig.get_path("stdlib"), "importlib")
_IMPORT = "an import"

#: What is no part of an operator wherever it is read: the kernel's files, and what compilers keep,
#: which they find by its content.
_NOBODYS = re.compile(
    r"^/(proc|sys|dev)/|^/etc/(ld\.so|localtime|nsswitch|passwd|mime)|/usr/share/zoneinfo/"
    r"|/(torchinductor_[^/]*|torch_extensions|triton_cache|\.triton)/"
)

#: Caches of compilers that a variable names.
_CACHES = ("TORCHINDUCTOR_CACHE_DIR", "TORCH_EXTENSIONS_DIR", "TRITON_CACHE_DIR")

#: Bits of ``os.open`` that say that a file is written.
_WRITING = os.O_WRONLY | os.O_RDWR

_HERE = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))

#: What reads files for others.
_PASSED = (__file__, os.path.join(_HERE, "base", "files.py"))

#: Looks at files for a name that they may mention.
_GLANCES = os.path.join(_HERE, "targets", "beside.py")

_seen: _Seen | None = None


class _Seen:
    """What was read, and why that may not be all."""

    def __init__(self) -> None:
        self.files: set[str] = set()
        self.written: set[str] = set()
        self.unseen: dict[str, None] = {}


def watch() -> None:
    """Look from now on, as long as this process lives; what was seen before is forgotten."""
    global _seen
    watched = _seen is not None
    _seen = _Seen()
    if not watched:
        is_installed("")  # what it needs to know is asked for before anything is watched
        sys.addaudithook(_hook)


def touched() -> tuple[list[str], list[str]]:
    """The files that this process read since :func:`watch` and that do not belong to what is
    installed, and why these may not be all, in words that complete "it …"."""
    seen = _seen or _Seen()
    files = seen.files | set(_mapped()) | set(_modules())
    unseen = dict(seen.unseen)
    if any(is_installed(path) is False and os.path.exists(path) for path in seen.written & files):
        unseen["reads a file that it writes"] = None
    files -= seen.written
    if len(files) > MOST_FILES:
        unseen[f"reads more than {MOST_FILES:,} files"] = None
    return sorted(files)[:MOST_FILES], list(unseen)


def _hook(event: str, args: tuple[Any, ...]) -> None:
    if event != "open" and event != "ctypes.dlopen" and event not in _DOORS:
        return
    if _seen is None:
        return
    # An error here would become one of the operator's.
    with suppress(Exception):
        if event == "open":
            _opened(_seen, *args[:3])
        elif event == "ctypes.dlopen":
            _read(_seen, args[0])
        else:
            _door(_seen, _DOORS[event], args[0] if args else None)


def _opened(seen: _Seen, path: Any, mode: Any, flags: Any) -> None:
    if isinstance(path, int) or path is None:
        return
    writes = bool(flags & _WRITING) if isinstance(flags, int) else False
    if isinstance(mode, str):
        writes = writes or any(letter in mode for letter in "wax+")
    if not writes:
        _read(seen, path)
        return
    name = os.path.abspath(os.fsdecode(path))
    fresh = bool(flags & (os.O_TRUNC | os.O_EXCL)) if isinstance(flags, int) else False
    if not fresh and os.path.exists(name):  # what was there before may be read through it
        _read(seen, path)
    seen.written.add(name)


def _read(seen: _Seen, path: Any) -> None:
    name = os.path.abspath(os.fsdecode(path))
    if name.endswith(".pyc"):
        with suppress(ValueError):
            source = importlib.util.source_from_cache(name)
            name = source if os.path.exists(source) else name
    if name in seen.written or os.path.basename(name).startswith("<") or is_installed(name):
        return
    # Whether a file beside the operator's mentions it is a part of the key; those that do are read
    # once more, by others.
    if len(seen.files) <= MOST_FILES and _caller(sys._getframe(1)) != _GLANCES:
        seen.files.add(name)


def _door(seen: _Seen, what: str, path: Any) -> None:
    """Something may come in; unless a compiler of torch's, or the import of a module, opened it."""
    caller = _caller(sys._getframe(1))
    if what in _OF_COMPILERS and caller.startswith((*_torch_folders(), *_gradlint())):
        return
    if what == _LISTS and (caller == _IMPORT or is_installed(os.path.abspath(path or "."))):
        return
    seen.unseen[what] = None


def _caller(frame: FrameType | None) -> str:
    """The file of the innermost code that is neither Python's own nor this module's;
    :data:`_IMPORT` where Python asked in order to import a module."""
    while frame is not None:
        file = frame.f_code.co_filename
        if file.startswith(("<frozen importlib", _IMPORTLIB)):
            return _IMPORT
        if file not in _PASSED and not _of_python(file):
            return file
        frame = frame.f_back
    return ""


def _modules() -> list[str]:
    """The files of all modules, also of those that were loaded from elsewhere than a file that was
    opened here, as by the server."""
    found = []
    for module in list(sys.modules.values()):
        with suppress(Exception):
            file = module.__file__
            if isinstance(file, str) and os.path.isfile(file) and not is_installed(file):
                found.append(os.path.abspath(file))
    return found


def _mapped() -> list[str]:
    """The files that are mapped into memory (Linux)."""
    found: set[str] = set()
    with suppress(OSError), open("/proc/self/maps", encoding="utf-8", errors="replace") as lines:
        for line in lines:
            path = line.rstrip("\n").split(None, 5)[5:]
            if path and path[0].startswith("/") and not path[0].endswith(" (deleted)"):
                found.add(path[0])
    return [path for path in found if not is_installed(path) and not _of_system(path)]


# -- whose a file is -------------------------------------------------------------------------------


@cache
def _installed() -> tuple[str, ...]:
    """The folders of what is installed, which a verdict depends on by name and version."""
    folders = {*sysconfig.get_paths().values(), *site.getsitepackages()}
    with suppress(Exception):
        folders.add(site.getusersitepackages())
    folders.add(_HERE)
    folders.add(os.path.join(sys.base_prefix, "lib"))
    folders.discard(sysconfig.get_path("data"))
    folders.discard(sysconfig.get_path("scripts"))
    return tuple(os.path.join(os.path.realpath(folder), "") for folder in folders if folder)


@cache
def _torch_folders() -> tuple[str, ...]:
    files = [getattr(sys.modules.get(name), "__file__", None) for name in ("torch", "triton")]
    return tuple(os.path.join(os.path.dirname(file), "") for file in files if file)


@cache
def _gradlint() -> tuple[str, ...]:
    return (os.path.join(_HERE, ""),)


@cache
def _scratch() -> tuple[str, ...]:
    named = [os.environ[name] for name in _CACHES if os.environ.get(name)]
    return tuple(os.path.join(os.path.realpath(folder), "") for folder in named)


@cache
def is_installed(path: str) -> bool:
    """Whether ``path`` is of what is installed, of the system, or of a compiler's cache."""
    if _NOBODYS.search(path):
        return True
    real = os.path.realpath(path)
    if real == os.path.realpath(sys.executable):
        return True
    return real.startswith((*_installed(), *_scratch()))


def _of_python(file: str) -> bool:
    """Whether ``file`` is of Python itself, and not of a package that is installed."""
    if file.startswith("<"):
        return True
    folder = os.path.join(sysconfig.get_path("stdlib"), "")
    return file.startswith(folder) and "site-packages" not in file[len(folder) :]


def _of_system(path: str) -> bool:
    """Whether a mapped file is of the operating system: its libraries, its language."""
    return path.startswith(("/usr/", "/lib", "/opt/cuda", "/var/cache", "/etc/", "/memfd:"))
