"""Reports of operators that are done, in a file instead of in memory: what a run holds does not
grow with what it found out.

The file has no name, so it goes with this process, however that ends. Each report is held against
a hash when it is read back: an operator that reached the file can't change what is said of another.
A report that can't be written, on a full disk for one, stays in memory, so nothing is lost.
"""

from __future__ import annotations

import hashlib
import os
import tempfile
import weakref
from collections.abc import Iterable, MutableSequence
from contextlib import suppress
from typing import Any, BinaryIO, overload

import msgspec

from gradlint.model.report import TargetReport

#: Bytes of the hash of a report (128 bits: nobody finds another text with the same).
_DIGEST_BYTES = 16

_encoder = msgspec.msgpack.Encoder()
_decoder: msgspec.msgpack.Decoder[TargetReport] = msgspec.msgpack.Decoder(TargetReport)


class Spoiled(RuntimeError):
    """What was kept of a report is not what was written."""


class Place:
    """Where one report is: a part of the file, or the report itself where it can't be written."""

    __slots__ = ("digest", "held", "length", "offset")

    def __init__(
        self, offset: int, length: int, digest: bytes, held: TargetReport | None = None
    ) -> None:
        self.offset = offset
        self.length = length
        self.digest = digest
        self.held = held


class Spool:
    """The file of one run, made when the first report is written."""

    def __init__(self) -> None:
        self._file: BinaryIO | None = None
        self._end = 0
        self._full = False

    def keep(self, report: TargetReport) -> Place:
        """Write ``report``, which is complete. It may be changed, and kept anew."""
        with suppress(TypeError, ValueError, OverflowError):  # no text or number of MessagePack
            data = _encoder.encode(report)
            if self._written(data):
                return Place(self._end - len(data), len(data), _digest(data))
        return Place(0, 0, b"", report)

    def read(self, place: Place) -> TargetReport:
        """The report at ``place``, made anew at each call unless it is in memory.

        Raises:
            Spoiled: the file was changed, or can't be read.
        """
        if place.held is not None:
            return place.held
        assert self._file is not None
        try:
            data = os.pread(self._file.fileno(), place.length, place.offset)
        except OSError as error:
            raise Spoiled(f"the file of results can't be read: {error.strerror}") from None
        if _digest(data) != place.digest:
            raise Spoiled("the file of results was changed by another program")
        return _decoder.decode(data)

    def gathered(self, reports: Iterable[TargetReport]) -> SpooledReports:
        """``reports``, each kept as it comes."""
        return SpooledReports(self, [self.keep(report) for report in reports])

    def _written(self, data: bytes) -> bool:
        if self._full:
            return False
        try:
            if self._file is None:
                self._file = tempfile.TemporaryFile(buffering=0)  # noqa: SIM115 (of the whole run)
                weakref.finalize(self, self._file.close)
            written = 0
            while written < len(data):
                left = memoryview(data)[written:]
                written += os.pwrite(self._file.fileno(), left, self._end + written)
        except OSError:
            self._full = True  # it would go wrong again, slowly
            return False
        self._end += len(data)
        return True


class SpooledReports(MutableSequence[TargetReport]):
    """The reports of a run in their order, each read from its :class:`Spool` when asked for.

    Every access makes the report anew. Who changes one puts it back:
    ``reports[number] = report``.

    Args:
        spool: what keeps them.
        places: of those that it keeps already.
    """

    def __init__(self, spool: Spool, places: Iterable[Place] = ()) -> None:
        self._spool = spool
        self._places = [*places]

    def __len__(self) -> int:
        """How many there are."""
        return len(self._places)

    @overload
    def __getitem__(self, index: int) -> TargetReport: ...

    @overload
    def __getitem__(self, index: slice) -> SpooledReports: ...

    def __getitem__(self, index: int | slice) -> TargetReport | SpooledReports:
        """One of them, or some."""
        if isinstance(index, slice):
            return SpooledReports(self._spool, self._places[index])
        return self._spool.read(self._places[index])

    def __setitem__(self, index: Any, value: Any) -> None:
        """Keep another report in the place of one of them, or of some."""
        if isinstance(index, slice):
            self._places[index] = [self._spool.keep(report) for report in value]
        else:
            self._places[index] = self._spool.keep(value)

    def __delitem__(self, index: int | slice) -> None:
        """Let one go, or some."""
        del self._places[index]

    def insert(self, index: int, value: TargetReport) -> None:
        """Keep another one."""
        self._places.insert(index, self._spool.keep(value))


def _digest(data: bytes) -> bytes:
    return hashlib.blake2b(data, digest_size=_DIGEST_BYTES).digest()
