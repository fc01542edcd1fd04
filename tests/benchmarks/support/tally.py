"""What a pass over the operator database found, and its table."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

from gradlint.numerics.decide import Decision
from gradlint.numerics.verdict import DIFFERS, ROUNDED, UNSURE, InputJudgement
from tests.benchmarks.support.faults import FAULTS
from tests.benchmarks.support.operators import Case

GOAL_MISSED = {"float64": 0.003, "float32": 0.01}
GOAL_TIME = 3.0
CAUGHT, DECLARED, SILENT = "caught", "declared", "silent"


@dataclass
class Line:
    """One verdict that is not what it should be, for the list above the table."""

    what: str
    op: str
    sample: int
    input: str
    detail: str

    def __str__(self) -> str:
        return f"{self.what:18} {self.op}[{self.sample}] {self.input}  {self.detail}"


@dataclass
class Tally:
    """What one pass over the database found."""

    samples: int = 0
    operators: set[str] = field(default_factory=set)
    verdicts: Counter[str] = field(default_factory=Counter)
    known: Counter[str] = field(default_factory=Counter)
    faults: Counter[tuple[str, str]] = field(default_factory=Counter)
    timed: int = 0
    fast_passed: int = 0
    seconds: Counter[str] = field(default_factory=Counter)
    lines: list[Line] = field(default_factory=list)
    slowest: list[tuple[float, str]] = field(default_factory=list)
    chatty: bool = False

    def add(self, line: Line) -> None:
        """Keep ``line``, and show it at once where that is wanted."""
        self.lines.append(line)
        if self.chatty:
            print(line, flush=True)

    def clock(self, case: Case, seconds: float, fast_s: float, passed: bool | None) -> None:
        """Keep what ``case`` took, and fast mode on it, and whether that passed."""
        self.slowest.append((seconds, f"{case.name}[{case.number}]"))
        self.seconds["gradlint"] += seconds
        self.seconds["fast mode"] += fast_s
        self.timed += 1
        if passed:
            self.fast_passed += 1
            self.seconds["gradlint, where fast mode passes"] += seconds
            self.seconds["fast mode, where it passes"] += fast_s

    def note(
        self,
        what: str,
        case: Case,
        name: str,
        detail: str,
        decision: Decision,
        item: InputJudgement,
    ) -> None:
        """Keep a line about input ``name`` of ``case``, with how well it was resolved."""
        power = f"resolution {decision.resolution_of(item.index):.1e}"
        note = decision.notes.get(item.index, "")
        self.add(Line(what, case.name, case.number, name, f"{detail}; {power} {note}"))


def outcome_of(decision: Decision, share: float) -> str:
    """What became of a fault in the first input judged that changes ‖g∘u‖ by this share, u a move
    of every element: caught, declared to be beyond what is resolved (or told as information), or
    missed in silence."""
    verdict, item = decision.verdicts[0], decision.judgement.inputs[0]
    if verdict == DIFFERS:
        return CAUGHT
    if verdict in (UNSURE, ROUNDED) or share <= decision.resolution_of(item.index):
        return DECLARED
    return SILENT


def rows(tallies: dict[str, Tally]) -> list[tuple[str, ...]]:
    """The table: what, then figure and goal of every dtype."""
    columns = [_column(tally, dtype) for dtype, tally in tallies.items()]
    found = [("", *(text for dtype in tallies for text in (dtype, "goal")))]
    for lines in zip(*columns, strict=True):
        found.append((lines[0][0], *(text for _, *texts in lines for text in texts)))
    return found


def _column(tally: Tally, dtype: str) -> list[tuple[str, str, str]]:
    verdicts = tally.verdicts
    found = [
        ("operators", str(len(tally.operators)), ""),
        ("samples", str(tally.samples), ""),
        ("gradients judged", str(sum(verdicts.values()) - verdicts["raised"]), ""),
        ("false alarms", str(verdicts[DIFFERS]), "0"),
        ("inconclusive", str(verdicts[UNSURE]), ""),
        ("agree to fewer digits", str(verdicts[ROUNDED]), ""),
        ("left out (see `support/known.py`)", str(sum(tally.known.values())), ""),
    ]
    for fault in FAULTS:
        counts = {outcome: tally.faults[fault, outcome] for outcome in (CAUGHT, DECLARED, SILENT)}
        total = sum(counts.values())
        if total:
            missed = counts[DECLARED] + counts[SILENT]
            share = f"{missed} of {total} ({100 * missed / total:.2f} %), {counts[SILENT]}"
            goal = f"{100 * GOAL_MISSED[dtype]:g} %, 0"
            found.append((f"{fault}: missed, silently", share, goal))
    ours, fast = tally.seconds["gradlint"], tally.seconds["fast mode"]
    found.append(("time of the clean pass", f"{ours:.1f} s", ""))
    if fast:
        ours_there = tally.seconds["gradlint, where fast mode passes"]
        fast_there = tally.seconds["fast mode, where it passes"]
        alarms = f"{tally.timed - tally.fast_passed} of {tally.timed} samples"
        found += [
            ("fast mode: false alarms", alarms, ""),
            ("time, in fast mode's", f"{ours / fast:.2f}", f"{GOAL_TIME:g}"),
            ("the same where that passes", f"{ours_there / fast_there:.2f}", f"{GOAL_TIME:g}"),
        ]
    return found


def slowest(tally: Tally, count: int = 5) -> list[tuple[float, str]]:
    """The samples that took longest."""
    return sorted(tally.slowest, reverse=True)[:count]
