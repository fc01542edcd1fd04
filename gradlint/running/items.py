"""The items of a plan: what is to be checked, small and self-contained, so that any process of any
machine can do it.

An item is one operator, with all its samples, dtypes, devices and rules. It is not split further:
rules refer to one another (what follows from GL401 is not reported as a second fault), GL801 holds
low precision against float64, GL802 one device against another, and all of them share runs of the
operator on a sample, which a split would make anew. Many machines are kept busy by many operators.

Items and results travel as MessagePack, decoded strictly by their types: what arrives can't run
code.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, TypeVar

import msgspec

from gradlint.model.op import OpRef
from gradlint.model.report import TargetReport
from gradlint.model.settings import Settings
from gradlint.targets.resolve import EVERY

R = TypeVar("R")

#: How much longer than a Function an operator of a kind takes (heuristic, from the examples:
#: modules have more inputs, specs sweep sizes). Only the order of the items depends on it.
_WEIGHTS = {"module": 2.0, "formula": 3.0}
_SPEC_WEIGHT = 3.0

#: Lines of a definition that count as one more Function (heuristic).
_LINES = 40


@dataclass(frozen=True)
class Item:
    """One operator, or a module whose operators are to be listed.

    Args:
        ref: what to check.
        settings: of the run.
        cost: what it is predicted to take, in units of a small Function.
        time_limit: seconds that it may take altogether; None for no limit.
        files: names of files without a folder → contents, for an operator that is in one of them.
        versions: what must be of these versions where it is done.
    """

    ref: OpRef
    settings: Settings
    cost: float = 1.0
    time_limit: float | None = None
    files: dict[str, str] = field(default_factory=dict)
    versions: dict[str, str] = field(default_factory=dict)

    @property
    def lists(self) -> bool:
        """Whether operators are to be listed, and not checked."""
        return self.ref.attribute == EVERY

    @property
    def needs_gpu(self) -> bool:
        """Whether it uses a GPU, which it shares with no other item."""
        return any(device != "cpu" for device in self.settings.devices)


@dataclass(frozen=True)
class Mistake:
    """A mistake of the user's: the class of the error, and what it holds."""

    error: str
    message: str
    place: str = ""
    hint: str = ""


@dataclass
class Result:
    """What came of an item.

    Args:
        host: where it was done.
        report: of an operator; None where operators were listed, or nothing could be done.
        refs: the operators that were listed.
        usage, internal: mistakes of the user's, and failures of gradlint's own.
        files, why: see ``gradlint.running.run.Seen``.
    """

    host: str
    report: TargetReport | None = None
    refs: list[OpRef] = field(default_factory=list)
    usage: list[Mistake] = field(default_factory=list)
    internal: list[str] = field(default_factory=list)
    files: list[str] = field(default_factory=list)
    why: str = ""


def encoded(value: Item | Result) -> bytes:
    """``value`` in MessagePack."""
    return msgspec.msgpack.encode(value)


def decoded(data: bytes, kind: type[R]) -> R:
    """What was :func:`encoded`.

    Raises:
        ValueError: it is nothing of that kind.
    """
    try:
        return msgspec.msgpack.decode(data, type=kind, strict=True)
    except msgspec.DecodeError as error:
        raise ValueError(f"no {kind.__name__}: {error}") from None


def predicted_cost(ref: OpRef, settings: Settings) -> float:
    """What ``ref`` will take, as far as its text tells: by kind, length, dtypes and devices."""
    weight = _SPEC_WEIGHT if ref.source == "spec" else _WEIGHTS.get(ref.kind, 1.0)
    if ref.location is not None and ref.location.end_line is not None:
        weight += (ref.location.end_line - ref.location.line) / _LINES
    dtypes = len(settings.dtypes) if settings.dtypes else 1
    return weight * dtypes * max(1, len(settings.devices))


def mistake_of(error: Any) -> Mistake:
    """A ``GradlintError`` as a value."""
    return Mistake(type(error).__name__, error.message, error.place, error.hint)
