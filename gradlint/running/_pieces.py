"""Numbered pieces of bytes on a pipe, each with its length in front."""

from __future__ import annotations

import os
import struct
from collections.abc import Iterator

#: Bytes that are read at a time.
CHUNK = 1 << 20

_HEAD = struct.Struct(">QQ")


class Pieces:
    """Puts pieces together from what is read."""

    def __init__(self) -> None:
        self._buffer = bytearray()

    def feed(self, data: bytes) -> Iterator[tuple[int, bytes]]:
        """The pieces that ``data`` completes: number and content."""
        self._buffer += data
        while len(self._buffer) >= _HEAD.size:
            number, size = _HEAD.unpack_from(self._buffer)
            end = _HEAD.size + size
            if len(self._buffer) < end:
                return
            body = bytes(self._buffer[_HEAD.size : end])
            del self._buffer[:end]
            yield number, body


def write(fd: int, number: int, body: bytes) -> None:
    """Write one piece.

    Raises:
        OSError: nobody reads.
    """
    left = memoryview(_HEAD.pack(number, len(body)) + body)
    while left:
        left = left[os.write(fd, left) :]
