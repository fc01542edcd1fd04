"""What of the user's own code ran, as plain data, and how it is said."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal

#: When a function ran. Code that backward calls counts as backward, also where forward calls it.
CodePhase = Literal["forward", "backward"]


@dataclass(slots=True)
class WayCoverage:
    """One outcome of a condition that has no statement of its own.

    Args:
        line: of the condition.
        text: which outcome, such as ```x > 0` false``.
        ran: whether it occurred.
        computes: whether an expression is evaluated on this way only.
    """

    line: int
    text: str
    ran: bool = False
    computes: bool = False


@dataclass(slots=True)
class FunctionCoverage:
    """What ran of one function.

    Args:
        file: as shown to the user.
        name: of the function.
        phase: when it ran, or would have run.
        lines: first lines of the statements that count.
        ran: those of them that ran.
        ways: outcomes of its conditions.
    """

    file: str
    name: str
    phase: CodePhase
    lines: list[int] = field(default_factory=list)
    ran: list[int] = field(default_factory=list)
    ways: list[WayCoverage] = field(default_factory=list)

    @property
    def missed(self) -> list[int]:
        """Lines of statements that never ran."""
        return sorted(set(self.lines) - set(self.ran))

    @property
    def full(self) -> bool:
        """Whether all of it was reached."""
        return not self.missed and all(way.ran for way in self.ways)


@dataclass(slots=True)
class PhaseCoverage:
    """What ran of the user's Python code of forward, or of backward.

    Args:
        lines: statements that ran.
        of: statements that there are.
        missed: lines of those that never ran, in the target's own file.
        missed_ways: ways through a line that would compute something and were never taken; and
            missed lines of other files.
    """

    lines: int
    of: int
    missed: list[int] = field(default_factory=list)
    missed_ways: list[str] = field(default_factory=list)

    @property
    def full(self) -> bool:
        """Whether nothing is left that would compute something and never ran."""
        return not self.missed and not self.missed_ways


def merged(
    first: Sequence[FunctionCoverage], second: Sequence[FunctionCoverage]
) -> list[FunctionCoverage]:
    """What ran in either of two runs."""
    found = {_key(item): item for item in first}
    for item in second:
        known = found.get(_key(item))
        found[_key(item)] = item if known is None else _both(known, item)
    return list(found.values())


def _key(item: FunctionCoverage) -> tuple[object, ...]:
    return item.file, item.name, tuple(item.lines)


def _both(first: FunctionCoverage, second: FunctionCoverage) -> FunctionCoverage:
    ways: dict[tuple[int, str], WayCoverage] = {}
    for way in (*first.ways, *second.ways):
        known = ways.get((way.line, way.text))
        ways[way.line, way.text] = way if known is None else replace(way, ran=way.ran or known.ran)
    return replace(
        first,
        phase="backward" if "backward" in (first.phase, second.phase) else "forward",
        ran=sorted({*first.ran, *second.ran}),
        ways=list(ways.values()),
    )


def by_phase(functions: Iterable[FunctionCoverage], file: str) -> dict[str, PhaseCoverage]:
    """The coverage of each phase that has code; ``file`` is the target's own."""
    found: dict[str, PhaseCoverage] = {}
    for item in functions:
        if not item.lines:
            continue
        phase = found.setdefault(item.phase, PhaseCoverage(0, 0))
        phase.lines += len(set(item.ran))
        phase.of += len(set(item.lines))
        if item.file == file:
            phase.missed = sorted({*phase.missed, *item.missed})
        else:
            phase.missed_ways += [f"{item.file}:{line}" for line in item.missed]
        missing = [way for way in item.ways if way.computes and not way.ran]
        phase.missed_ways += [_way(item, way, file) for way in missing if _is_new(item, way)]
    return found


def not_reached(functions: Iterable[FunctionCoverage], file: str) -> list[str]:
    """What never ran, in words: ``line 84``, ``lines 3-5``, ``line 9: `flag` false``."""
    items = list(functions)
    own = sorted({line for item in items if item.file == file for line in item.missed})
    words = [_range("line", *span) for span in _ranges(own)]
    for other in dict.fromkeys(item.file for item in items if item.file != file):
        lines = sorted({line for item in items if item.file == other for line in item.missed})
        words += [f"{other}:{first}" for first, _ in _ranges(lines)]
    ways = [
        _way(item, way, file)
        for item in items
        for way in sorted(item.ways, key=lambda way: way.line)
        if not way.ran and _is_new(item, way)
    ]
    return words + list(dict.fromkeys(ways))


def _is_new(item: FunctionCoverage, way: WayCoverage) -> bool:
    """Whether the line of ``way`` ran at all: if not, that is said already."""
    return way.line not in item.missed


def _way(item: FunctionCoverage, way: WayCoverage, file: str) -> str:
    place = f"line {way.line}" if item.file == file else f"{item.file}:{way.line}"
    return f"{place}: {way.text}"


def _ranges(lines: Sequence[int]) -> list[tuple[int, int]]:
    """Lines that follow each other as first and last."""
    found: list[tuple[int, int]] = []
    for line in lines:
        if found and line == found[-1][1] + 1:
            found[-1] = found[-1][0], line
        else:
            found.append((line, line))
    return found


def _range(word: str, first: int, last: int) -> str:
    return f"{word} {first}" if first == last else f"{word}s {first}-{last}"
