"""What a run tells of itself while it is under way."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from gradlint.model.report import TargetReport


@dataclass(frozen=True)
class Running:
    """What one worker is at.

    Args:
        target: the operator; phase: one of ``gradlint.ops.phase.PHASES``.
        code: of the rule that is running, or the name of other work; "" if none is known.
        seconds: since the target was begun.
        report: what is known of it up to now; findings may still be taken back.
    """

    target: str
    phase: str
    code: str
    seconds: float
    report: TargetReport | None = None


#: Called with the number of targets done, the number known so far, and the one just done.
Progress = Callable[[int, int, TargetReport], None]

#: Called again and again, at least every other second, with the number of targets done, the number
#: known so far, and what is running.
Tick = Callable[[int, int, Sequence[Running]], None]
