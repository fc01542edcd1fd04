"""Measurements within a budget of calls and of time."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

import torch

from gradlint.base.clock import had_seconds
from gradlint.experiments.call_cost import Shape
from gradlint.model.report import Prediction
from gradlint.numerics.decide import Decision
from gradlint.numerics.directions import KINDS
from gradlint.numerics.map import Map
from gradlint.numerics.verdict import DIFFERS, UNSURE
from gradlint.trace.problem import Problem

#: Share of ``--timeout`` after which a check measures no further: it concludes and names causes
#: from what it has, before the worker is ended and its results are lost.
DEADLINE = 0.7

#: Kinds of direction of second order: without "random", a call there costs twice as much.
SECOND_ORDER_KINDS = KINDS[:3]

#: Kind of direction where only one is used: "aligned" would not move an element whose gradient is
#: wrongly zero.
SINGLE_DIRECTION = ("signs",)

#: Calls beyond the usual ones that are reserved for second order: VJPs, which no budget refuses,
#: and one more step along a draw or two.
SECOND_ORDER_RESERVE = 12


@dataclass
class Plan:
    """What is going to run on a sample.

    Args:
        first, second: kinds of direction for first and second order, one pair (v, u) each; empty
            where not even one is affordable.
        torch: whether torch's own verdicts are affordable.
        budget: ``--max-calls``, or None.
        timeout: ``--timeout``, in seconds, or None.
        first_calls: calls that first order usually takes.
        reserved: calls of the budget that first order leaves to second order.
        reason: why there are fewer pairs than usual; otherwise empty.
        predictions: what the rules will take, by family.
        shape: what the number of calls depends on; None before it is known.
        call_s: seconds of a forward and a backward call; None where they were not measured.
    """

    first: tuple[str, ...] = KINDS
    second: tuple[str, ...] = SECOND_ORDER_KINDS
    torch: bool = True
    budget: int | None = None
    timeout: float | None = None
    first_calls: int = 0
    reserved: int = 0
    reason: str = ""
    predictions: list[Prediction] = field(default_factory=list)
    shape: Shape | None = None
    call_s: float | None = None

    def pairs(self, code: str) -> tuple[int, int] | None:
        """Number of pairs that check ``code`` judges, and the usual number; None for other
        checks."""
        found = {"GL401": (self.first, KINDS), "GL501": (self.second, SECOND_ORDER_KINDS)}.get(code)
        return None if found is None else (len(found[0]), len(found[1]))

    def note(self, code: str) -> str:
        """A note on the pairs of check ``code``; empty where there are as many as usual."""
        pairs = self.pairs(code)
        if pairs is None or pairs[0] == pairs[1]:
            return ""
        if not pairs[0]:
            return f"not one pair could be measured: {self.reason} is too small"
        return f"{pairs[0]} of {pairs[1]} pairs: {self.reason}"

    @property
    def too_small(self) -> str:
        """Why second order is left out; otherwise empty."""
        return "" if self.second else f"left out: beyond {self.reason}"


class CallBudget:
    """Refuses evaluations of a function, as if it raised, after a number of calls or a time.

    Args:
        problem: counts the calls; those of a float64 twin are counted here.
        most: calls, forward and backward together; None for any number.
        until: on the clock of :func:`had_seconds`; None for any time.
    """

    def __init__(self, problem: Problem, most: int | None, until: float | None) -> None:
        self.problem, self.most, self.until = problem, most, until
        self.spent = False
        self.late = False
        self._twins = 0

    def over(self, function: Map) -> Map:
        """``function`` within this budget, and its float64 twin too."""

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
            if self.until is not None and had_seconds() >= self.until:
                self.late = True
                return None
            self._twins += counted
            return function.evaluate(values)

        return replace(function, evaluate=evaluate)


def decide_within(
    plan: Plan, problem: Problem, function: Map, reserved: int, decide: Callable[[Map], Decision]
) -> Decision:
    """``decide`` on ``function`` within the budget and the time of ``plan``.

    Beyond the budget, further steps, paths and comparisons are refused; but a disagreement is
    confirmed, distinguished from kinks and located whatever that costs. Beyond the time nothing is
    measured any more, and a note on every input says so.

    Args:
        reserved: calls of the budget that are kept for others.
        decide: judges the map that it is given.
    """
    until = None if plan.timeout is None else had_seconds() + DEADLINE * plan.timeout
    most = None if plan.budget is None else plan.budget - reserved
    budget = CallBudget(problem, most, until)
    decision = decide(budget.over(function))
    budget.most = None
    if budget.spent and any(i.verdict == DIFFERS for i in decision.judgement.inputs):
        budget.spent = False
        decision = decide(budget.over(function))
    if budget.spent or budget.late:
        limit = f"--timeout {plan.timeout:g}" if budget.late else f"--max-calls {plan.budget}"
        for place, item in enumerate(decision.judgement.inputs):
            if budget.late or decision.verdicts[place] == UNSURE:
                decision.notes[item.index] = f"measured no further: {limit}"
    return decision
