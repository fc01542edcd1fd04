"""Measurements within a budget of calls and of time."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import replace

import torch

from gradlint.experiments.plan import Plan
from gradlint.numerics.decide import Decision
from gradlint.numerics.map import Map
from gradlint.numerics.verdict import DIFFERS, UNSURE
from gradlint.trace.problem import Problem

#: Share of ``--timeout`` after which a check measures no further: it concludes and names causes
#: from what it has, before the worker is ended and all is lost.
DEADLINE = 0.7


class Allowance:
    """Refuses evaluations of a function, as if it raised, beyond a number of calls or a time.

    Args:
        problem: counts the calls; those of a float64 twin are counted here.
        most: calls, forward and backward together; None for any number.
        until: on the clock of ``time.monotonic``; None for any time.
    """

    def __init__(self, problem: Problem, most: int | None, until: float | None) -> None:
        self.problem, self.most, self.until = problem, most, until
        self.spent = False
        self.late = False
        self._twins = 0

    def over(self, function: Map) -> Map:
        """``function`` within this allowance; its float64 twin too."""

        def twin() -> Map | None:
            found = function.twin() if function.twin is not None else None
            return None if found is None else self._bounded(found, 1)

        bounded = self._bounded(function, 0)
        return bounded if function.twin is None else replace(bounded, twin=twin)

    def _bounded(self, function: Map, counted: int) -> Map:
        def evaluate(values: Sequence[torch.Tensor]) -> Sequence[torch.Tensor] | None:
            calls = self.problem.forward_calls + self.problem.backward_calls + self._twins
            if self.most is not None and calls >= self.most:
                self.spent = True
                return None
            if self.until is not None and time.monotonic() >= self.until:
                self.late = True
                return None
            self._twins += counted
            return function.evaluate(values)

        return replace(function, evaluate=evaluate)


def decide_within(
    plan: Plan, problem: Problem, function: Map, reserved: int, decide: Callable[[Map], Decision]
) -> Decision:
    """``decide`` on ``function`` within the budget and the time of ``plan``.

    Beyond the budget further steps, paths and comparisons are refused; but a disagreement is
    followed up whatever calls it costs: confirmed, told from kinks, and located. Beyond the time
    nothing is measured any more, and every input is told to have been cut short.

    Args:
        reserved: calls of the budget that are left to others.
        decide: judges the map that it is given.
    """
    until = None if plan.timeout is None else time.monotonic() + DEADLINE * plan.timeout
    most = None if plan.budget is None else plan.budget - reserved
    allowance = Allowance(problem, most, until)
    decision = decide(allowance.over(function))
    allowance.most = None
    if allowance.spent and any(i.verdict == DIFFERS for i in decision.judgement.inputs):
        allowance.spent = False
        decision = decide(allowance.over(function))
    if allowance.spent or allowance.late:
        limit = f"--timeout {plan.timeout:g}" if allowance.late else f"--max-calls {plan.budget}"
        for place, item in enumerate(decision.judgement.inputs):
            if allowance.late or decision.verdicts[place] == UNSURE:
                decision.notes[item.index] = f"measured no further: {limit}"
    return decision
