"""What is going to run on a sample: as many pairs as a budget affords, and what they will take."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from gradlint.checking.run_order import turn
from gradlint.experiments.call_cost import (
    Calls,
    Shape,
    disagreement,
    first_order_calls,
    memory_bytes,
    other_calls,
    rule_calls,
    second_order_calls,
    torch_calls,
)
from gradlint.experiments.subject import Subject
from gradlint.model.report import Prediction
from gradlint.model.rule import Rule
from gradlint.numerics.directions import KINDS
from gradlint.numerics.timing import TIMES
from gradlint.trace.op_io import OpRaised

#: Kinds of direction of second order: without "random", a call there costs twice as much.
SECOND_KINDS = KINDS[:3]

#: The one kind where there is one: "aligned" would not move an element whose gradient is wrongly
#: zero.
LONE = ("signs",)

#: First calls include start-up; from this many seconds on they are timed again.
SLOW_S = 5e-3

#: To see and confirm a disagreement may take this share of ``--timeout``, where fewer pairs can
#: bring it there (heuristic: then there is time left to locate it).
SHARE_OF_TIMEOUT = 0.5

#: Before pairs are left out, calls are timed again, as a busy machine stalls them now and then:
#: those that took no more than this share of ``--timeout`` (heuristic: longer stalls are rare).
TIMED_AGAIN = 0.02

#: The last of the families whose rules hardly do more than look at the instrumented run.
LOOKS = "GL3"

#: These rules look at other samples one by one, as long as the budget affords it.
LIMITED = ("GL705", "GL706", "GL707")

#: Measurements of a subject that several rules share, and the calls that they take together: made
#: by whichever rule asks first.
SHARED, SHARED_CALLS = {"baseline", "guarded", "lifetime"}, 16

#: Calls beyond the usual ones that are kept for second order: VJPs, which no budget refuses, and
#: one more step along a draw or two.
MORE = 12

_CallsOf = Callable[..., Calls]


@dataclass
class Plan:
    """What is going to run on a sample.

    Args:
        first, second: kinds of direction for first and second order, one pair (v, u) each; none
            where not even one is affordable.
        torch: whether torch's own verdicts are affordable.
        budget: ``--max-calls``, or None.
        timeout: ``--timeout``, in seconds, or None.
        first_calls: calls that first order usually takes.
        reserved: calls of the budget that first order leaves to second order.
        reason: why there are fewer pairs than usual; empty where there are not.
        predictions: what the rules will take, by family.
        shape: what the number of calls depends on; None before it is known.
        call_s: seconds of a forward and a backward call; None where they were not measured.
    """

    first: tuple[str, ...] = KINDS
    second: tuple[str, ...] = SECOND_KINDS
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
    plan = Plan(budget=settings.max_calls, timeout=settings.timeout)
    run = subject.run
    if run.error is not None or run.gradients is None:
        return plan
    shape = Shape.of(subject)
    families = {rule.code[:3] for rule in rules}
    codes = [rule.code for rule in rules if rule.code not in ("GL401", "GL501")]
    plan.shape = shape
    forward_s, backward_s = (subject.run_s,) * 2
    if families & {"GL4", "GL5"}:
        forward_s, backward_s = _timed(subject)
        plan.call_s = forward_s + backward_s
    second = any(rule.order == 2 for rule in rules)

    def seconds(calls: Calls) -> float:
        return calls.forward * forward_s + calls.backward * backward_s

    longest = settings.timeout * SHARE_OF_TIMEOUT

    def affordable(
        kinds: tuple[str, ...], values: int, evaluation_s: float, pull_s: float
    ) -> tuple[str, ...]:
        for count in range(len(kinds), 1, -1):
            calls = disagreement(count, values, shape.bits)
            if calls.forward * evaluation_s + calls.backward * pull_s <= longest:
                return kinds[:count]
        return LONE

    values = shape.inputs + shape.outputs
    for further in reversed(range(TIMES)):
        both_s = forward_s + backward_s
        plan.first = affordable(KINDS, shape.inputs, forward_s, both_s)
        plan.second = affordable(SECOND_KINDS, values, both_s, both_s + backward_s)
        full = (plan.first, plan.second) == (KINDS, SECOND_KINDS)
        if full or plan.call_s is None or both_s > TIMED_AGAIN * settings.timeout or not further:
            break
        forward_s, backward_s = map(min, (forward_s, backward_s), _timed(subject))
        plan.call_s = forward_s + backward_s
    if not full:
        plan.reason = (
            f"a call takes {forward_s + backward_s:.2g} s (--timeout {settings.timeout:g})"
        )
    if settings.max_calls is not None:
        looks = [code for code in codes if turn(code) <= turn(LOOKS) and code != "GL301"]
        _fit(plan, settings.max_calls - other_calls(looks, shape, most=False).total, shape, second)
    for family, calls_of in (
        ("others", None),
        ("GL4", lambda most: first_order_calls(len(plan.first), shape, most=most)),
        ("GL5", lambda most: second_order_calls(len(plan.second), shape, most=most)),
    ):
        if calls_of is None:
            usual, most = (other_calls(codes, shape, most=m) for m in (False, True))
        elif family not in families or (family == "GL5" and not plan.second):
            continue
        else:
            usual, most = calls_of(False), calls_of(True)
        plan.predictions.append(
            Prediction(
                subject.sample.label,
                family,
                most.forward,
                most.backward,
                usual.forward,
                usual.backward,
                seconds(usual),
                memory_bytes(shape, family),
            )
        )
    return plan


def beyond_budget(subject: Subject, code: str) -> str:
    """Why check ``code`` is left out, which might measure beyond ``--max-calls``; else empty.

    What the rules up to GL3 see at the run itself, they say within any budget.
    """
    plan, problem = subject.plan, subject.problem
    if plan.budget is None or plan.shape is None or code == "GL401" or turn(code) <= turn(LOOKS):
        return ""
    if code.startswith("GL5"):
        spent = problem.forward_calls + problem.backward_calls
        enough = subject.has("twice") or spent < plan.budget
    else:
        most = code not in LIMITED
        shared = 0 if SHARED.issubset(vars(subject)) else SHARED_CALLS
        enough = affords(subject, rule_calls(code, plan.shape, most=most).total + shared)
    return "" if enough else f"left out: beyond --max-calls {plan.budget}"


def affords(subject: Subject, calls: int) -> bool:
    """Whether ``--max-calls`` leaves as many calls to what is no numerics: those come first, and
    what they will take is kept back."""
    plan, problem = subject.plan, subject.problem
    if plan.budget is None:
        return True
    kept = 0 if subject.has("first_order") else plan.first_calls
    kept += 0 if subject.has("twice") else plan.reserved
    return calls <= plan.budget - kept - problem.forward_calls - problem.backward_calls


def _most(
    kinds: tuple[str, ...], calls_of: _CallsOf, shape: Shape, fits: Callable[[Calls], bool]
) -> tuple[str, ...]:
    """As many of ``kinds`` as fit, the most telling first; one alone is :data:`LONE`."""
    for count in range(len(kinds), 1, -1):
        if fits(calls_of(count, shape, most=False)):
            return kinds[:count]
    return LONE if kinds and fits(calls_of(1, shape, most=False)) else ()


def _fit(plan: Plan, budget: int, shape: Shape, second: bool) -> None:
    """Lower the pairs of ``plan`` until what is usual fits into ``budget`` calls, which are left to
    the numerics."""
    before = (plan.first, plan.second)
    left = budget
    plan.first = _most(plan.first, first_order_calls, shape, lambda c: c.total <= left)
    plan.first_calls = first_order_calls(len(plan.first), shape, most=False).total
    left -= plan.first_calls
    if second:
        plan.second = _most(plan.second, second_order_calls, shape, lambda c: c.total <= left)
        if plan.second:
            usual = second_order_calls(len(plan.second), shape, most=False).total
            left -= usual
            plan.reserved = usual + MORE
    own = torch_calls(shape, 1).total + (torch_calls(shape, 2).total if second else 0)
    plan.torch = own <= left
    if (plan.first, plan.second) != before:
        plan.reason = f"--max-calls {plan.budget}"


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
            problem.backward(chosen, leaves, [item.value.detach() for item in chosen])
    except OpRaised:
        return half, half
    return forward_s, time.perf_counter() - started - forward_s
