"""What is going to run on a sample: as many pairs as a budget affords, and what they will take."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

import torch

from gradlint.numerics._directions import KINDS
from gradlint.numerics._judge import DIFFERS, UNSURE
from gradlint.numerics._map import Map
from gradlint.report import Prediction
from gradlint.rules._cost import (
    Calls,
    Shape,
    first_order_calls,
    memory_bytes,
    other_calls,
    second_order_calls,
    torch_calls,
)
from gradlint.trace._problem import OpRaised, Problem

if TYPE_CHECKING:
    from gradlint.numerics._decide import Decision
    from gradlint.rules._rule import Rule
    from gradlint.rules._subject import Subject

#: Kinds of direction of second order: without "gaussian", a call there costs twice as much.
SECOND_KINDS = KINDS[:3]

#: First calls include start-up; from this many seconds on they are timed again.
SLOW_S = 5e-3

#: A check may take this share of ``--timeout``, where fewer pairs can bring it there (heuristic: a
#: disagreement costs as much again to confirm, and then to locate).
SHARE_OF_TIMEOUT = 1.0 / 3.0

_CallsOf = Callable[..., Calls]


@dataclass
class Plan:
    """What is going to run on a sample.

    Args:
        first, second: kinds of direction for first and second order, one pair (v, u) each; none
            where not even one is affordable.
        torch: whether torch's own verdicts are affordable.
        budget: ``--max-calls``, or None.
        reserved: calls of the budget that first order leaves to second order.
        reason: why there are fewer pairs than usual; empty where there are not.
        predictions: what the rules will take, by family.
    """

    first: tuple[str, ...] = KINDS
    second: tuple[str, ...] = SECOND_KINDS
    torch: bool = True
    budget: int | None = None
    reserved: int = 0
    reason: str = ""
    predictions: list[Prediction] = field(default_factory=list)

    def pairs(self, code: str) -> tuple[int, int] | None:
        """Pairs that check ``code`` judges, and usual ones; None where it judges none."""
        found = {"GL401": (self.first, KINDS), "GL501": (self.second, SECOND_KINDS)}.get(code)
        return None if found is None else (len(found[0]), len(found[1]))

    def note(self, code: str) -> str:
        """What a reader of check ``code`` must know of its pairs; empty where all are there."""
        pairs = self.pairs(code)
        if pairs is None or pairs[0] == pairs[1]:
            return ""
        if not pairs[0]:
            return f"not one pair could be measured: {self.reason} is too small"
        return f"{pairs[0]} of {pairs[1]} pairs: {self.reason}"

    @property
    def too_small(self) -> str:
        """Why second order is left out; empty where it is not."""
        return "" if self.second else f"left out: beyond {self.reason}"


def make_plan(subject: Subject, rules: Sequence[Rule]) -> Plan:
    """What will run on ``subject`` under ``--max-calls`` and ``--timeout``.

    Args:
        subject: its instrumented run is made here, where it was not before.
        rules: those selected.
    """
    settings = subject.settings
    plan = Plan(budget=settings.max_calls)
    run = subject.run
    if run.error is not None or run.gradients is None:
        return plan
    shape = Shape.of(subject)
    forward_s, backward_s = _timed(subject)
    second = any(rule.order == 2 for rule in rules)

    def seconds(calls: Calls) -> float:
        return calls.forward * forward_s + calls.backward * backward_s

    longest = settings.timeout * SHARE_OF_TIMEOUT
    plan.first = (
        _most(KINDS, first_order_calls, shape, lambda c: seconds(c) <= longest) or KINDS[:1]
    )
    plan.second = (
        _most(SECOND_KINDS, second_order_calls, shape, lambda c: seconds(c) <= longest)
        or SECOND_KINDS[:1]
    )
    if (plan.first, plan.second) != (KINDS, SECOND_KINDS):
        plan.reason = (
            f"a call takes {forward_s + backward_s:.1f} s (--timeout {settings.timeout:g})"
        )
    if settings.max_calls is not None:
        _fit(plan, settings.max_calls, shape, second)
    families = {rule.code[:3] for rule in rules}
    for family, calls_of in (
        ("GL0 to GL3", None),
        ("GL4", lambda most: first_order_calls(len(plan.first), shape, most=most)),
        ("GL5", lambda most: second_order_calls(len(plan.second), shape, most=most)),
    ):
        if calls_of is None:
            usual, most = (other_calls(shape, most=m) for m in (False, True))
        elif family not in families or (family == "GL5" and not plan.second):
            continue
        else:
            usual, most = calls_of(False), calls_of(True)
        pairs = len(plan.second if family == "GL5" else plan.first)
        plan.predictions.append(
            Prediction(
                subject.sample.label,
                family,
                most.forward,
                most.backward,
                usual.forward,
                usual.backward,
                seconds(usual),
                memory_bytes(shape, pairs),
            )
        )
    return plan


def _most(
    kinds: tuple[str, ...], calls_of: _CallsOf, shape: Shape, fits: Callable[[Calls], bool]
) -> tuple[str, ...]:
    """As many of ``kinds`` as fit, the most telling first."""
    for count in range(len(kinds), 0, -1):
        if fits(calls_of(count, shape, most=False)):
            return kinds[:count]
    return ()


def _fit(plan: Plan, budget: int, shape: Shape, second: bool) -> None:
    """Lower the pairs of ``plan`` until what is usual fits into ``budget`` calls."""
    left = budget - other_calls(shape, most=False).total
    before = (plan.first, plan.second)
    plan.first = _most(plan.first, first_order_calls, shape, lambda c: c.total <= left)
    left -= first_order_calls(len(plan.first), shape, most=False).total
    if second:
        plan.second = _most(plan.second, second_order_calls, shape, lambda c: c.total <= left)
        if plan.second:
            plan.reserved = second_order_calls(len(plan.second), shape, most=False).total
            left -= plan.reserved
    own = torch_calls(shape, 1).total + (torch_calls(shape, 2).total if second else 0)
    plan.torch = own <= left
    if (plan.first, plan.second) != before:
        plan.reason = f"--max-calls {budget}"


def _timed(subject: Subject) -> tuple[float, float]:
    """Seconds of one forward and of one backward call."""
    half = subject.run_s / 2
    if subject.run_s < SLOW_S:
        return half, half
    problem = subject.problem
    try:
        started = time.perf_counter()
        leaves, outputs = problem.linearize()
        forward_s = time.perf_counter() - started
        chosen = [item for item in outputs if item.differentiable]
        if chosen:
            problem.backward(chosen, leaves, [torch.ones_like(item.value) for item in chosen])
    except OpRaised:
        return half, half
    return forward_s, time.perf_counter() - started - forward_s


class Allowance:
    """Refuses evaluations of a function beyond a number of calls.

    Args:
        problem: counts the calls; those of a float64 twin are counted here.
        most: calls, forward and backward together.
    """

    def __init__(self, problem: Problem, most: int) -> None:
        self.problem, self.most = problem, most
        self.refused = False
        self.active = True
        self._twins = 0

    def over(self, function: Map) -> Map:
        """``function``, whose evaluations are refused (as if it raised) beyond the budget."""

        def twin() -> Map | None:
            found = function.twin() if function.twin is not None else None
            return None if found is None else self._counted(found)

        bounded = self._bounded(function)
        return bounded if function.twin is None else replace(bounded, twin=twin)

    def _bounded(self, function: Map) -> Map:
        def evaluate(values: Sequence[torch.Tensor]) -> Sequence[torch.Tensor] | None:
            spent = self.problem.forward_calls + self.problem.backward_calls + self._twins
            if self.active and spent >= self.most:
                self.refused = True
                return None
            return function.evaluate(values)

        return replace(function, evaluate=evaluate)

    def _counted(self, function: Map) -> Map:
        def evaluate(values: Sequence[torch.Tensor]) -> Sequence[torch.Tensor] | None:
            self._twins += 1
            return function.evaluate(values)

        return self._bounded(replace(function, evaluate=evaluate))


def decide_within(
    plan: Plan, problem: Problem, function: Map, reserved: int, decide: Callable[[Map], Decision]
) -> Decision:
    """``decide`` on ``function`` within the budget of ``plan``.

    Further steps, paths and comparisons are refused beyond it; a disagreement is followed up
    whatever it costs: confirmed, told from kinks, and located.

    Args:
        reserved: calls of the budget that are left to others.
        decide: judges the map that it is given.
    """
    if plan.budget is None:
        return decide(function)
    allowance = Allowance(problem, plan.budget - reserved)
    decision = decide(allowance.over(function))
    allowance.active = False
    if not allowance.refused:
        return decision
    if any(item.verdict == DIFFERS for item in decision.judgement.inputs):
        return decide(function)
    for place, item in enumerate(decision.judgement.inputs):
        if decision.verdicts[place] == UNSURE:
            decision.notes[item.index] = f"measured no further: --max-calls {plan.budget}"
    return decision
