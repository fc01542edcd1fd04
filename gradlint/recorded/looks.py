"""Which calls of an operator are looked at, and by what they are told apart."""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence
from typing import Any

from gradlint.recorded.written import LONGEST_TEXT

#: Share of the program's time that looking at calls may take, and seconds that it may save up
#: while the program does other work (heuristic: some hundred looks of 3 µs).
SHARE, MOST_SAVED = 0.02, 0.001
#: Calls of an operator that are looked at whatever that costs.
FIRST_LOOKED = 64
#: Calls between two looks, at most (heuristic: a skipped call takes 0.3 µs, and one in 128 adds
#: next to nothing to that).
MOST_SKIPPED = 127
#: Arguments, also within lists and dicts, of which a call is told apart; of one list, its first.
MOST_TOLD, MOST_OF_LIST = 32, 8
#: Combinations of integer arguments after which they no longer make another kind of call: a count
#: of steps is another number every time.
MOST_INTEGERS = 32
#: Kinds of calls that are remembered.
MOST_KINDS = 1024


class Seen:
    """What is known of one operator in this process.

    Attributes:
        op: how it is found again; empty before its first call.
        calls: how many there were, those included that ``skip`` lets pass.
        looked: how many were looked at.
        skip: calls that pass before one is looked at again.
        passed: how many passed before this look.
        step: about how many pass between looks.
        due: the number of the call that is kept next.
        kept: calls that were kept.
        kinds: of the calls that were looked at.
        integers: combinations of integers among their arguments.
        whole: whether these tell calls apart.
        lost: what was not kept → how often.
    """

    __slots__ = (
        *("calls", "due", "integers", "kept", "kinds", "looked", "lost", "op"),
        *("passed", "skip", "step", "whole"),
    )

    def __init__(self, op: dict[str, Any] | None = None) -> None:
        self.op = op or {}
        self.kinds: set[Any] = set()
        self.integers: set[Any] = set()
        self.whole = True
        self.skip = 0
        self.restart(1)

    def restart(self, due: int) -> None:
        """No call was made yet in this process."""
        self.calls = self.looked = self.kept = self.skip = self.passed = self.step = 0
        self.due = due
        self.lost: dict[str, int] = {}

    @property
    def counted(self) -> int:
        """The calls that were made."""
        return self.calls - max(0, self.skip)

    def is_new(self, kind: Any) -> bool:
        """Whether a call is of another kind than all before."""
        if kind in self.kinds:
            return False
        if len(self.kinds) < MOST_KINDS:
            self.kinds.add(kind)
        return True

    def lose(self, reason: str) -> None:
        """Note what is not kept."""
        if reason in self.lost or len(self.lost) < 16:
            self.lost[reason] = self.lost.get(reason, 0) + 1


class Budget:
    """The time that looking at calls may take: a share of the program's, whatever it calls.

    While looks take more, fewer calls are looked at: about every second, fourth, eighth … one of an
    operator. How many pass in a row varies, so that no rhythm of the program's hides a kind of call
    for good.
    """

    def __init__(self) -> None:
        self.left = MOST_SAVED
        self.last = time.perf_counter()
        self.drawn = 1

    def spend(self, seen: Seen, begun: float) -> None:
        """A call was looked at, from ``begun`` until now: how many pass until the next look."""
        now = time.perf_counter()
        saved = self.left + SHARE * (begun - self.last)
        self.left = min(MOST_SAVED, saved) - (now - begun)
        self.last = now
        if self.left >= 0 or seen.looked < FIRST_LOOKED:
            seen.step //= 2
        else:
            seen.step = min(MOST_SKIPPED, 2 * seen.step + 1)
        skip = seen.step
        if skip:
            # A generator of its own: the program's random numbers are the program's.
            self.drawn = self.drawn * 1103515245 + 12345 & 0x7FFFFFFF
            skip = min(skip // 2 + self.drawn % (skip + 1), max(0, seen.due - seen.calls - 1))
        seen.passed = skip
        seen.calls += skip
        seen.skip = skip


def kind_of(torch: Any, seen: Seen, args: Sequence[Any], kwargs: dict[str, Any]) -> tuple[Any, ...]:
    """By what calls of an operator are told apart: contexts, shapes, dtypes, options."""
    parts: list[Any] = [
        torch.is_grad_enabled(),
        torch.is_inference_mode_enabled(),
        torch.is_autocast_enabled(),
        len(args),
    ]
    integers: list[int] = []
    _tell(torch.Tensor, args[:MOST_TOLD], parts, integers, MOST_TOLD)
    if kwargs:
        parts.append(tuple(kwargs))
        some = list(kwargs.values())[:MOST_TOLD]
        _tell(torch.Tensor, some, parts, integers, MOST_TOLD)
    if seen.whole and integers:
        numbers = tuple(integers)
        if numbers not in seen.integers:
            seen.integers.add(numbers)
            seen.whole = len(seen.integers) <= MOST_INTEGERS
        if seen.whole:
            parts.append(numbers)
    return tuple(parts)


def _tell(
    Tensor: type, values: Iterable[Any], parts: list[Any], integers: list[int], left: int
) -> None:
    """Add what ``values`` are told apart by: to ``parts``, and integers to a list of theirs."""
    for value in values:
        kind = type(value)
        if kind is Tensor or isinstance(value, Tensor):
            parts.append((value.shape, value.dtype, value.requires_grad, kind.__name__))
        elif kind is int:
            parts.append(int)
            integers.append(value if -(2**63) <= value < 2**63 else 0)
        elif kind is bool or value is None or (kind is str and len(value) <= LONGEST_TEXT):
            parts.append(value)
        elif kind in (list, tuple, dict) and left > 0:
            parts.append((kind, len(value)))
            inner = value.values() if kind is dict else value
            count = range(min(left, MOST_OF_LIST))
            some = [item for item, _ in zip(inner, count, strict=False)]
            _tell(Tensor, some, parts, integers, left - len(some) - 1)
        else:
            parts.append(kind)
