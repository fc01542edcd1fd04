"""Events on the way from a worker to the process that reports.

An event is a kind and a payload of plain values and report dataclasses. Frames are length and
pickle. The reader never blocks: a worker may die in the middle of a frame while a process that
it left behind holds the pipe open.
"""

from __future__ import annotations

import dataclasses
import os
import pickle
import struct
from typing import Any

_HEAD = struct.Struct(">Q")
_CHUNK = 1 << 20


def encode(kind: str, payload: Any) -> bytes:
    """The frame of one event; objects of the user's are turned to text before."""
    body = pickle.dumps((kind, plain(payload)), protocol=pickle.HIGHEST_PROTOCOL)
    return _HEAD.pack(len(body)) + body


class Decoder:
    """Puts frames together again from chunks of bytes."""

    def __init__(self) -> None:
        self._buffer = bytearray()

    def feed(self, chunk: bytes) -> list[tuple[str, Any]]:
        """The events completed by ``chunk``. Raises what pickle raises on rubbish."""
        self._buffer += chunk
        events = []
        while len(self._buffer) >= _HEAD.size:
            (size,) = _HEAD.unpack_from(self._buffer)
            end = _HEAD.size + size
            if len(self._buffer) < end:
                break
            kind, payload = pickle.loads(bytes(self._buffer[_HEAD.size : end]))
            del self._buffer[:end]
            events.append((kind, payload))
        return events


def write_all(fd: int, data: bytes) -> None:
    """Write every byte of ``data``, however the pipe splits it."""
    view = memoryview(data)
    while view:
        view = view[os.write(fd, view) :]


def read_available(fd: int) -> tuple[bytes, bool]:
    """What can be read from a non-blocking ``fd`` now, and whether it has come to its end."""
    try:
        chunk = os.read(fd, _CHUNK)
    except BlockingIOError:
        return b"", False
    except OSError:
        return b"", True
    return chunk, not chunk


def plain(value: Any) -> Any:
    """``value`` as builtin values and gradlint's own dataclasses, with printable strings.

    Subclasses of builtins become the builtin, anything else becomes text, so that nothing of
    the user's is unpickled by the process that reports.
    """
    kind = type(value)
    if value is None or kind in (bool, int, float, bytes):
        return value
    if isinstance(value, str):
        return printable(value)
    if dataclasses.is_dataclass(value) and kind.__module__.split(".")[0] == "gradlint":
        return kind(**{f.name: plain(getattr(value, f.name)) for f in dataclasses.fields(kind)})
    if isinstance(value, dict):
        return {plain(key): plain(item) for key, item in dict.items(value)}
    bases: tuple[Any, ...] = (list, tuple, set, frozenset)
    for base in bases:
        if isinstance(value, base):
            return base(plain(item) for item in base.__iter__(value))
    for number in (bool, int, float):
        if isinstance(value, number):
            return number(value)
    from gradlint.model.sample import short_text

    return short_text(value, 200)


def printable(text: str) -> str:
    """``text`` as a plain ``str`` that UTF-8 can carry (lone surrogates become escapes)."""
    return str.encode(text, "utf-8", "backslashreplace").decode("utf-8")
