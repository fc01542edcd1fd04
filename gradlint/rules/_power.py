"""How sharply each input was judged, and what to do where that was not sharp enough."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING

from gradlint.report import InputPower

if TYPE_CHECKING:
    from gradlint.numerics._decide import Decision
    from gradlint.rules._subject import Subject


def input_powers(subject: Subject, code: str) -> list[InputPower]:
    """The resolving power of check ``code`` for every input; nothing for checks without one.

    Reads what was measured, and measures nothing.
    """
    if code == "GL401" and "first_order" in vars(subject):
        names = [item.name for item in subject.problem.inputs]
        return _of(subject.first_order, names)
    if code == "GL501" and "twice" in vars(subject):
        twice = subject.twice
        if twice.map is not None and twice.decision is not None:
            return _of(twice.decision, twice.map.names)
    return []


def _of(decision: Decision, names: list[str]) -> list[InputPower]:
    return [
        InputPower(
            names[item.index],
            decision.verdicts[place],
            decision.resolution_of(item.index),
            item.element_resolution,
            item.kappa,
        )
        for place, item in enumerate(decision.judgement.inputs)
        if decision.function.values[item.index].numel()
    ]


def next_step(subject: Subject, code: str, note: str) -> str:
    """What to do about an inconclusive check with this ``note``."""
    plan = subject.plan
    target = shlex.quote(subject.op.target)
    if "--max-calls" in plan.reason or "--max-calls" in note:
        return "raise --max-calls, or leave it out"
    if "--timeout" in note:
        return "raise --timeout, or give the op smaller inputs (--inputs)"
    if code.startswith(("GL4", "GL5")) and subject.problem.inputs:
        return (
            f"`gradlint sweep {target} --seed {subject.seed}` shows what limits the measurement; "
            "try --dtype float64, or --inputs away from kinks and poles"
        )
    return "try other inputs (--inputs)"
