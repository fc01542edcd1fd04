"""Which instructions of the user's functions ran, and which way their branches went.

Before Python 3.12 by ``sys.settrace``, which calls back before every instruction; from 3.12 on by
``sys.monitoring``, where an instruction that was seen once costs nothing more. Instructions are
finer than lines: ``a if flag else b`` is one line with two ways through it.

This module imports neither torch nor gradlint, so that tests can run it under any Python.
"""

from __future__ import annotations

import dis
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import lru_cache
from types import CodeType, FrameType
from typing import Any

#: Instructions that are watched at most under ``sys.settrace``. Heuristic: they take about 0.2 s.
#: Loops over elements in Python have millions, and without a limit took ten times as long.
MOST_STEPS = 400_000

#: Numbers under which tools may register with ``sys.monitoring``, without those reserved for
#: debuggers, coverage.py, profilers and optimizers (Python's documentation of the module).
_TOOLS = (3, 4)


class Executed:
    """What ran of the functions that ``wanted`` accepts, in all threads that were watched.

    Args:
        wanted: whether a function, given by its code, is the user's own; asked once for each.

    Attributes:
        offsets: function → byte offsets of the instructions that ran.
        branches: function → pairs of a conditional jump's offset and that of what ran next.
        phases: function → the phases in which it was called.
        phase: the phase that calls belong to from now on.
        complete: False once something could not be watched, so that what is not here may have run.
    """

    def __init__(self, wanted: Callable[[CodeType], bool]) -> None:
        self.offsets: dict[CodeType, set[int]] = {}
        self.branches: dict[CodeType, set[tuple[int, int]]] = {}
        self.phases: dict[CodeType, set[str]] = {}
        self.phase = "forward"
        self.complete = True
        self._wanted = wanted
        self._known: dict[CodeType, bool] = {}
        self._steps = 0
        self._trace = self._begin  # one object: a bound method is a new one each time

    def watching(self) -> Any:
        """A context manager: what this thread runs in the body is noted (from Python 3.12 on, what
        any thread runs)."""
        return self._monitored() if hasattr(sys, "monitoring") else self._traced()

    def in_this_thread(self) -> Any:
        """The same for one more thread, inside the body of :meth:`watching`."""
        return _nothing() if hasattr(sys, "monitoring") else self._traced()

    @property
    def size(self) -> int:
        """How much was noted: it grows with all that is new."""
        noted = sum(len(found) for found in self.offsets.values())
        noted += sum(len(found) for found in self.branches.values())
        noted += sum(len(found) for found in self.phases.values())
        return noted + (not self.complete)

    def is_wanted(self, code: CodeType) -> bool:
        """Whether ``code`` is one of the user's own functions."""
        if code not in self._known:
            self._known[code] = self._wanted(code)
        return self._known[code]

    def _note(self, code: CodeType) -> None:
        self.offsets.setdefault(code, set())
        self.branches.setdefault(code, set())
        self.phases.setdefault(code, set()).add(self.phase)

    # -- sys.settrace ---------------------------------------------------------------------------
    @contextmanager
    def _traced(self) -> Iterator[None]:
        before = sys.gettrace()
        sys.settrace(self._trace)
        try:
            yield
        finally:
            if sys.gettrace() is self._trace:  # the user's code may have set another
                sys.settrace(before)

    def _begin(self, frame: FrameType, event: str, argument: Any) -> Any:
        code = frame.f_code
        if event != "call" or not self.is_wanted(code):
            return None
        self._note(code)
        if self._steps > MOST_STEPS:
            self.complete = False
            return None
        frame.f_trace_opcodes, frame.f_trace_lines = True, False
        offsets, branches, jumps = self.offsets[code], self.branches[code], conditional_jumps(code)
        last = -1

        def step(frame: FrameType, event: str, argument: Any) -> Any:
            nonlocal last
            if event != "opcode":
                return step
            self._steps += 1
            if self._steps > MOST_STEPS:
                self.complete = frame.f_trace_opcodes = False
                return None
            offset = frame.f_lasti
            offsets.add(offset)
            if last in jumps:
                branches.add((last, offset))
            last = offset
            return step

        return step

    # -- sys.monitoring -------------------------------------------------------------------------
    @contextmanager
    def _monitored(self) -> Iterator[None]:
        monitoring = sys.monitoring  # type: ignore[attr-defined,unused-ignore]
        tool = next((tool for tool in _TOOLS if monitoring.get_tool(tool) is None), None)
        if tool is None:
            self.complete = False
            yield
            return
        events = monitoring.events
        # BRANCH is deprecated from Python 3.14 on, where each way has an event of its own.
        ways = [getattr(events, name, 0) for name in ("BRANCH_LEFT", "BRANCH_RIGHT")]
        ways = ways if all(ways) else [events.BRANCH]
        inside = events.INSTRUCTION
        for way in ways:
            inside |= way

        def start(code: CodeType, offset: int) -> Any:
            if not self.is_wanted(code):
                return monitoring.DISABLE
            self._note(code)
            monitoring.set_local_events(tool, code, inside)
            return None

        def instruction(code: CodeType, offset: int) -> Any:
            self.offsets[code].add(offset)
            return monitoring.DISABLE

        def branch(code: CodeType, offset: int, target: int) -> Any:
            self.branches[code].add((offset, target))

        monitoring.use_tool_id(tool, "gradlint")
        try:
            for event, function in (
                (events.PY_START, start),
                (events.INSTRUCTION, instruction),
                *((way, branch) for way in ways),
            ):
                monitoring.register_callback(tool, event, function)
            monitoring.restart_events()
            monitoring.set_events(tool, events.PY_START)
            yield
        finally:
            monitoring.set_events(tool, 0)
            for code in self.offsets:
                monitoring.set_local_events(tool, code, 0)
            for event in (events.PY_START, events.INSTRUCTION, *ways):
                monitoring.register_callback(tool, event, None)
            monitoring.free_tool_id(tool)


@contextmanager
def _nothing() -> Iterator[None]:
    yield


@lru_cache(maxsize=256)
def conditional_jumps(code: CodeType) -> frozenset[int]:
    """Offsets of the conditional jumps of ``code`` (not those of ``for``), and of the instructions
    that extend their arguments: where there is one, only that is reported as running."""
    found: set[int] = set()
    prefixes: list[int] = []
    for instruction in dis.get_instructions(code):
        if instruction.opname == "EXTENDED_ARG":
            prefixes.append(instruction.offset)
            continue
        if instruction.opname.startswith(("POP_JUMP", "JUMP_IF")):
            found.update((*prefixes, instruction.offset))
        prefixes = []
    return frozenset(found)


#: First line, last line, first column, last column (bytes from 0, the last exclusive); the columns
#: are None where Python does not keep them.
Span = tuple[int, int, "int | None", "int | None"]


@lru_cache(maxsize=256)
def spans(code: CodeType) -> dict[int, Span]:
    """Offset of each instruction of ``code`` → the expression or statement that it belongs to."""
    if not hasattr(code, "co_positions"):  # Python 3.10
        return {
            instruction.offset: (line, line, None, None)
            for instruction, line in _with_lines(code)
            if line is not None
        }
    found: dict[int, Span] = {}
    positions = list(code.co_positions())
    for instruction in dis.get_instructions(code):
        line, end_line, column, end_column = positions[instruction.offset // 2]
        if line is not None and instruction.opname not in ("RESUME", "CACHE"):
            found[instruction.offset] = (line, end_line or line, column, end_column)
    return found


def _with_lines(code: CodeType) -> Iterator[tuple[dis.Instruction, int | None]]:
    line = None
    for instruction in dis.get_instructions(code):
        starts = instruction.starts_line
        line = starts if isinstance(starts, int) and not isinstance(starts, bool) else line
        yield instruction, line
