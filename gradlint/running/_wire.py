"""How events travel from a worker to the process that reports.

A frame is the length of the rest, an authentication code, and one event in MessagePack. Events are
data, decoded strictly by their types, so nothing that arrives can run code here. The code is a
keyed hash (BLAKE2b) of the frame's number and content; the key is known to the parent and the
worker's channel alone. Bytes that something else wrote to the descriptor, and frames that were
recorded and sent again, therefore do not validate. On Linux the kernel also vouches for the
process that wrote: the channel is a socket that passes credentials.
"""

from __future__ import annotations

import dataclasses
import hashlib
import os
import socket
import struct
import sys
from collections.abc import Iterator
from multiprocessing.connection import Connection
from typing import Any

import msgspec

from gradlint.base.text import printable, short_text
from gradlint.model.events import Confirmable, Event, Found
from gradlint.running.events import AnyEvent, Result

#: Bytes of the largest frame. Heuristic: the largest events (samples with many arguments) take a
#: few hundred kilobytes.
MOST_BYTES = 1 << 25

KEY_BYTES = 32
_MAC_BYTES = 16
_HEAD = struct.Struct(">I")
_NUMBER = struct.Struct(">Q")
_CHUNK = 1 << 20

#: ``struct ucred`` of Linux: process, user and group.
_CREDENTIALS = struct.Struct("3i")

#: Numbers that MessagePack can hold as such.
_INTEGERS = range(-(2**63), 2**64)

_encoder = msgspec.msgpack.Encoder()
_decoder: msgspec.msgpack.Decoder[Any] = msgspec.msgpack.Decoder(AnyEvent, strict=True)


class FrameError(Exception):
    """Bytes that are not the next frame of this worker."""


def new_key() -> bytearray:
    """A key for one worker, which the worker's end wipes once it has read it."""
    return bytearray(os.urandom(KEY_BYTES))


class Sealer:
    """Makes the frames of one worker, in order.

    Args:
        key: as made by :func:`new_key`.
    """

    def __init__(self, key: bytes | bytearray) -> None:
        self._hash = hashlib.blake2b(key=bytes(key), digest_size=_MAC_BYTES)
        self._number = 0

    def mac(self, body: bytes) -> bytes:
        """The authentication code of ``body`` as the content of the next frame."""
        state = self._hash.copy()
        state.update(_NUMBER.pack(self._number))
        state.update(body)
        return state.digest()

    def frame(self, event: Event) -> bytes:
        """The next frame, which holds ``event``; the user's objects in it become text."""
        # What is sent is what the parent accepts: numbers take the types that fields declare.
        event = _decoder.decode(_encoder.encode(_plain_event(event)))
        body = _encoder.encode(event)
        mac = self.mac(body)
        if len(mac) + len(body) > MOST_BYTES:
            raise FrameError(
                f"a {type(event).__name__} of {len(body):,} bytes is too large to send"
            )
        self._number += 1
        return _HEAD.pack(len(mac) + len(body)) + mac + body

    def accept(self) -> None:
        """Count a frame that was received."""
        self._number += 1


class Decoder:
    """Puts the frames of one worker together from chunks of bytes."""

    def __init__(self, key: bytes | bytearray) -> None:
        self._sealer = Sealer(key)
        self._buffer = bytearray()

    @property
    def incomplete(self) -> bool:
        """Whether a frame has begun and not ended."""
        return bool(self._buffer)

    def feed(self, chunk: bytes) -> Iterator[AnyEvent]:
        """The events that ``chunk`` completes.

        Raises:
            FrameError: at the first frame that does not validate.
        """
        self._buffer += chunk
        while len(self._buffer) >= _HEAD.size:
            (size,) = _HEAD.unpack_from(self._buffer)
            if not _MAC_BYTES < size <= MOST_BYTES:
                raise FrameError(f"a frame of {size:,} bytes was announced")
            end = _HEAD.size + size
            if len(self._buffer) < end:
                break
            body = bytes(self._buffer[_HEAD.size + _MAC_BYTES : end])
            mac = bytes(self._buffer[_HEAD.size : _HEAD.size + _MAC_BYTES])
            if mac != self._sealer.mac(body):
                raise FrameError("a frame was not made by the worker's own channel")
            self._sealer.accept()
            event = decoded(body)
            del self._buffer[:end]
            yield event


def decoded(body: bytes) -> AnyEvent:
    """The event in ``body``.

    Raises:
        FrameError: it is not exactly what some event encodes to.
    """
    try:
        event: AnyEvent = _decoder.decode(body)
        # Unknown keys of dataclasses, double keys and the like do not survive a round trip.
        if _encoder.encode(event) != body:
            raise FrameError(f"a {type(event).__name__} holds something its type does not have")
    except (msgspec.MsgspecError, ValueError, TypeError, RecursionError, OverflowError) as error:
        raise FrameError(f"an event does not validate: {error}") from error
    if isinstance(event, Found):
        _check_plain(event.finding.evidence)
    elif isinstance(event, Result):
        _check_plain(event.value)
    return event


def _check_plain(value: Any) -> None:
    """Raise unless ``value`` is what JSON can hold, with any number as a float."""
    if value is None or type(value) in (bool, int, float, str):
        return
    if type(value) is list:
        for item in value:
            _check_plain(item)
        return
    if type(value) is dict and all(type(key) is str for key in value):
        for item in value.values():
            _check_plain(item)
        return
    raise FrameError(f"an event holds a {type(value).__name__}, which is not plain data")


# -- The two ends --------------------------------------------------------------------------------
class Receiver:
    """The parent's end of the channel; never blocks."""

    def __init__(self, end: socket.socket | Connection) -> None:
        self._end = end
        os.set_blocking(end.fileno(), False)

    def fileno(self) -> int:
        """Of the descriptor, to wait on."""
        return self._end.fileno()

    def close(self) -> None:
        """Close the descriptor."""
        self._end.close()

    def read(self) -> tuple[bytes, int | None, bool]:
        """What can be read now from one process, that process's id where the kernel tells it, and
        whether the channel has come to its end."""
        if isinstance(self._end, Connection):
            chunk, ended = read_available(self.fileno())
            return chunk, None, ended
        try:
            # The kernel does not merge what different processes wrote. There is room for
            # credentials only: descriptors that somebody sends are dropped.
            space = socket.CMSG_SPACE(_CREDENTIALS.size)
            chunk, ancillary, _, _ = self._end.recvmsg(_CHUNK, space)
        except BlockingIOError:
            return b"", None, False
        except OSError:
            return b"", None, True
        pid = None
        for level, kind, data in ancillary:
            if (level, kind) == (socket.SOL_SOCKET, socket.SCM_CREDENTIALS):
                pid = _CREDENTIALS.unpack(data[: _CREDENTIALS.size])[0]
        return chunk, pid, not chunk


def channel(context: Any) -> tuple[Receiver, Connection]:
    """The parent's and the worker's end of a channel; ``context`` is multiprocessing's."""
    if sys.platform != "linux":
        ours, theirs = context.Pipe(duplex=False)
        return Receiver(ours), theirs
    mine, other = socket.socketpair(socket.AF_UNIX, socket.SOCK_STREAM)
    mine.setsockopt(socket.SOL_SOCKET, socket.SO_PASSCRED, 1)
    return Receiver(mine), Connection(other.detach())


def write_all(fd: int, data: bytes) -> None:
    """Write every byte of ``data``, however the descriptor splits it."""
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


# -- From the user's objects to plain data -------------------------------------------------------
def _plain_event(event: Event) -> Any:
    if isinstance(event, Confirmable):  # the one type that holds bytes
        texts = plain(msgspec.structs.replace(event, arrays=[]))
        return msgspec.structs.replace(texts, arrays=list(map(bytes, event.arrays)))
    return plain(event)


def plain(value: Any) -> Any:
    """``value`` as builtin values and gradlint's own dataclasses and events, with text that prints.

    Subclasses of builtins become the builtin, and anything else becomes text, so that nothing of
    the user's travels.
    """
    kind = type(value)
    if kind is int:
        return value if value in _INTEGERS else short_text(value, 200)
    if value is None or kind in (bool, float):
        return value
    if isinstance(value, str):
        return printable(value)
    if kind.__module__.partition(".")[0] == "gradlint":
        names = None
        if dataclasses.is_dataclass(value):
            names = [field.name for field in dataclasses.fields(kind)]
        elif isinstance(value, Event):
            names = list(kind.__struct_fields__)
        if names is not None:
            return kind(**{name: plain(getattr(value, name)) for name in names})
    if isinstance(value, dict):
        return {_key(key): plain(item) for key, item in dict.items(value)}
    bases: tuple[Any, ...] = (list, tuple)
    for base in bases:
        if isinstance(value, base):
            return [plain(item) for item in base.__iter__(value)]
    for number in (int, float):
        if isinstance(value, number):
            return plain(number(value))
    return short_text(value, 200)


def _key(key: Any) -> str:
    if isinstance(key, str):
        return printable(key)
    return str(key) if key is None or type(key) in (bool, int, float) else short_text(key, 200)
