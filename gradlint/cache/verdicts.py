"""Verdicts that earlier runs came to: found where nothing changed that they depend on, and kept
where all of that is known."""

from __future__ import annotations

import copy
import os
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

import msgspec

from gradlint.base.digests import digest_of
from gradlint.base.text import error_line, without_password
from gradlint.cache.key import Key, Keys
from gradlint.cache.store import Damaged, Store, opened, sealed, unsealed
from gradlint.model.op import OpRef
from gradlint.model.report import CacheUse, TargetReport
from gradlint.model.settings import Settings
from gradlint.running.run import Seen

#: Entries that are asked for at a time, so that few are held.
_BATCH = 200

#: Seconds before the start of a run in which a file that was read must not have changed: file
#: systems keep times to two seconds at worst (FAT).
_GRAIN_S = 2.0


@dataclass
class _Entry:
    """What is kept of one operator.

    Args:
        key: under which it is kept; parts: what it was made of.
        read: the files that the worker read → their hashes; "" for one that was not there.
        report: what was found out.
    """

    key: str
    parts: dict[str, str]
    read: dict[str, str]
    report: TargetReport


_encoder = msgspec.msgpack.Encoder()
_decoder: msgspec.msgpack.Decoder[_Entry] = msgspec.msgpack.Decoder(_Entry, strict=True)


@dataclass
class Verdicts:
    """The cache of one run.

    Args:
        settings: of the run; name the place.
    """

    settings: Settings
    use: CacheUse = field(init=False)
    _waiting: list[OpRef] = field(init=False, default_factory=list)

    def __post_init__(self) -> None:
        place = self.settings.cache or ""
        self.use = CacheUse(without_password(place))
        self._store: Store | None = opened(place)
        self._keys = Keys(self.settings)
        self._made: dict[OpRef, Key] = {}
        self._sources: dict[OpRef, dict[str, str]] = {}
        self._place: dict[OpRef, int] = {}
        self._ahead: dict[str, bytes] = {}
        self._asked: set[str] = set()
        self._started = time.time()

    def expect(self, refs: Sequence[OpRef], settings: Settings) -> None:
        """These are going to be asked for, in this order.

        Args:
            settings: those of the run, with no device that is absent.
        """
        self._keys = Keys(settings)
        self._waiting = [*refs]
        self._place = {ref: number for number, ref in enumerate(self._waiting)}

    def find(self, ref: OpRef) -> TargetReport | None:
        """The report on ``ref`` that an earlier run made; None where there is none, or something
        changed since."""
        key = self._key(ref)
        if not key.text:
            return None
        data = self._read(ref, key.text)
        if data is None:
            return None
        try:
            entry = _decoder.decode(unsealed(data))
            if entry.key != key.text or entry.report.target != ref.target:
                raise Damaged("it is the entry of another operator")
        except (Damaged, msgspec.DecodeError, ValueError) as error:
            self._drop(key.text, error)
            return None
        if not self._unchanged(entry.read):
            return None
        self.use.read += 1
        entry.report.cached = True
        return entry.report

    def keep(self, ref: OpRef, report: TargetReport, seen: Seen) -> None:
        """Keep what was found out about ``ref``, if all that it depends on is known.

        Args:
            ref: the operator.
            report: as it is before the rest of the run is known.
            seen: what its worker read.
        """
        key = self._key(ref)
        why = key.why or seen.why
        if not why:
            why, read = self._all_read(seen.files, key)
        if not why and self._keys.changed(key):
            why = "changed during the run"
        if why:
            self.use.not_kept[ref.target] = why
            return
        report = copy.copy(report)
        report.position = []
        body = _encoder.encode(_Entry(key.text, key.parts, read, report))
        self._write(key.text, sealed(body))

    # -- what it depends on ---------------------------------------------------------------------

    def _key(self, ref: OpRef) -> Key:
        if ref not in self._made:
            self._made[ref] = self._keys.key(ref)
        return self._made[ref]

    def _all_read(self, files: Iterable[str], key: Key) -> tuple[str, dict[str, str]]:
        """Why not all that was read is known, and the hashes of the files that are not in the
        key."""
        read: dict[str, str] = {}
        for file in map(os.path.realpath, files):
            if file in key.files or not self._keys.counts(file):
                continue
            name = self._keys.shown(file)
            try:
                read[name] = digest_of(file)
                late = bool(read[name]) and os.stat(file).st_mtime > self._started - _GRAIN_S
            except OSError as error:
                return f"reads {name} ({error.strerror or error})", read
            if late:
                return f"reads {name}, which changed during the run", read
        return "", read

    def _unchanged(self, read: dict[str, str]) -> bool:
        for name, known in read.items():
            try:
                if digest_of(os.path.join(self._keys.folder, name)) != known:
                    return False
            except OSError:
                return False
        return True

    # -- the store ------------------------------------------------------------------------------

    def _read(self, ref: OpRef, key: str) -> bytes | None:
        """What is kept under ``key``; that of the next operators is asked for at the same time."""
        if key not in self._asked:
            start = self._place.get(ref, len(self._waiting))
            batch = [self._key(item).text for item in [ref, *self._waiting[start + 1 :][:_BATCH]]]
            keys = [item for item in dict.fromkeys(batch) if item]
            self._asked.update(keys)
            self._ahead.update(self._fetched(keys))
        return self._ahead.pop(key, None)

    def _fetched(self, keys: list[str]) -> dict[str, bytes]:
        if self._store is None:
            return {}
        try:
            return self._store.read(keys)
        except OSError as error:
            self._give_up(f"can't be read: {_why(error)}")
            return {}

    def _write(self, key: str, data: bytes) -> None:
        if self._store is None:
            return
        try:
            self._store.write(key, data)
        except OSError as error:
            self._give_up(f"can't be written: {_why(error)}")
        else:
            self.use.kept += 1

    def _drop(self, key: str, error: Exception) -> None:
        why = str(error) if isinstance(error, Damaged) else error_line(error)
        self._note(
            f"The cache ({self.use.path}) held a damaged entry, which was dropped, and its "
            f"operator was checked anew: {why}."
        )
        if self._store is not None:
            self._store.drop(key)

    def _give_up(self, what: str) -> None:
        """The run goes on without; what it finds out is lost to later runs alone."""
        self._store = None
        self._note(f"The cache ({self.use.path}) {what}. The run went on without it.")

    def _note(self, text: str) -> None:
        if text not in self.use.notes:
            self.use.notes.append(text)


def _why(error: OSError) -> str:
    return error.strerror or str(error)
