"""What is going to run on a sample: as many pairs as a budget affords, and what they will take."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from gradlint.base.clock import had_seconds
from gradlint.experiments.call_budget import (
    SECOND_ORDER_KINDS,
    SECOND_ORDER_RESERVE,
    SINGLE_DIRECTION,
    Plan,
)
from gradlint.experiments.call_cost import (
    Calls,
    Shape,
    disagreement_calls,
    first_order_calls,
    memory_bytes,
    other_calls,
    rule_calls,
    second_order_calls,
    torch_calls,
)
from gradlint.experiments.subject import Subject
from gradlint.model.report import Prediction
from gradlint.model.rule import Rule, Stage
from gradlint.numerics.directions import KINDS
from gradlint.numerics.timing import TIMES
from gradlint.trace.op_io import OpRaised

#: First calls include start-up; from this many seconds on they are timed again.
SLOW_CALL_S = 5e-3

#: To see and confirm a disagreement may take this share of ``--timeout``, where fewer pairs can
#: bring it there (heuristic: then there is time left to locate it).
SHARE_OF_TIMEOUT = 0.5

#: Before pairs are left out, calls are timed again, as a busy machine stalls them now and then:
#: those that took no more than this share of ``--timeout`` (heuristic: longer stalls are rare).
TIMED_AGAIN_SHARE = 0.02

#: Measurements of a subject that several rules share, and the calls that they take together: made
#: by whichever rule asks first.
SHARED, SHARED_CALLS = ("make_baseline", "make_guarded", "make_lifetime"), 16


_CallsOf = Callable[..., Calls]


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
    shape = Shape.of(
        [item.value for item in subject.problem.inputs],
        [item.value for item in subject.run.outputs if item.differentiable],
    )
    families = {rule.code[:3] for rule in rules}
    others = [rule for rule in rules if rule.code not in ("GL401", "GL501")]
    plan.shape = shape
    forward_s, backward_s = (subject.run_s,) * 2
    if families & {"GL4", "GL5"}:
        forward_s, backward_s = _time_calls(subject)
        plan.call_s = forward_s + backward_s
    second = any(rule.order == 2 for rule in rules)

    longest = settings.timeout * SHARE_OF_TIMEOUT

    def affordable(
        kinds: tuple[str, ...], values: int, evaluation_s: float, pull_s: float
    ) -> tuple[str, ...]:
        for count in range(len(kinds), 1, -1):
            calls = disagreement_calls(count, values, shape.bits)
            if calls.forward * evaluation_s + calls.backward * pull_s <= longest:
                return kinds[:count]
        return SINGLE_DIRECTION

    values = shape.inputs + shape.outputs
    for further in reversed(range(TIMES)):
        both_s = forward_s + backward_s
        plan.first = affordable(KINDS, shape.inputs, forward_s, both_s)
        plan.second = affordable(SECOND_ORDER_KINDS, values, both_s, both_s + backward_s)
        full = (plan.first, plan.second) == (KINDS, SECOND_ORDER_KINDS)
        if (
            full
            or plan.call_s is None
            or both_s > TIMED_AGAIN_SHARE * settings.timeout
            or not further
        ):
            break
        forward_s, backward_s = map(min, (forward_s, backward_s), _time_calls(subject))
        plan.call_s = forward_s + backward_s
    if not full:
        plan.reason = (
            f"a call takes {forward_s + backward_s:.2g} s (--timeout {settings.timeout:g})"
        )
    if settings.max_calls is not None:
        looks = [rule for rule in others if rule.stage is Stage.RUN and rule.code != "GL301"]
        _fit_into_budget(
            plan, settings.max_calls - other_calls(looks, shape, most=False).total, shape, second
        )
    plan.predictions = _predictions(subject, plan, rules, (forward_s, backward_s))
    return plan


def _predictions(
    subject: Subject, plan: Plan, rules: Sequence[Rule], call_s: tuple[float, float]
) -> list[Prediction]:
    """What ``rules`` will take, by family.

    Args:
        call_s: seconds of one forward and of one backward call.
    """
    shape = plan.shape
    assert shape is not None
    families = {rule.code[:3] for rule in rules}
    others = [rule for rule in rules if rule.code not in ("GL401", "GL501")]

    def seconds(calls: Calls) -> float:
        return calls.forward * call_s[0] + calls.backward * call_s[1]

    predictions = []
    by_family: tuple[tuple[str, Callable[[bool], Calls] | None], ...] = (
        ("others", None),
        ("GL4", lambda most: first_order_calls(len(plan.first), shape, most=most)),
        ("GL5", lambda most: second_order_calls(len(plan.second), shape, most=most)),
    )
    for family, calls_of in by_family:
        if calls_of is None:
            usual, most = (other_calls(others, shape, most=m) for m in (False, True))
        elif family not in families or (family == "GL5" and not plan.second):
            continue
        else:
            usual, most = calls_of(False), calls_of(True)
        predictions.append(
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
    return predictions


def beyond_budget(subject: Subject, rule: Rule) -> str:
    """Why ``rule`` is left out, which might measure beyond ``--max-calls``; else empty.

    What the rules up to GL3 see at the run itself, they say within any budget.
    """
    plan, problem = subject.plan, subject.problem
    if plan.budget is None or plan.shape is None or rule.code == "GL401" or rule.stage <= Stage.RUN:
        return ""
    if rule.order == 2:
        spent = problem.forward_calls + problem.backward_calls
        enough = subject.made("differentiate_twice") or spent < plan.budget
    else:
        most = rule.stage is not Stage.SIZES
        shared = 0 if all(subject.made(name) for name in SHARED) else SHARED_CALLS
        enough = subject.affords(rule_calls(rule, plan.shape, most=most).total + shared)
    return "" if enough else f"left out: beyond --max-calls {plan.budget}"


def _affordable_kinds(
    kinds: tuple[str, ...], calls_of: _CallsOf, shape: Shape, fits: Callable[[Calls], bool]
) -> tuple[str, ...]:
    """As many of ``kinds`` as fit, the most telling first; a single one is that of
    :data:`SINGLE_DIRECTION`."""
    for count in range(len(kinds), 1, -1):
        if fits(calls_of(count, shape, most=False)):
            return kinds[:count]
    return SINGLE_DIRECTION if kinds and fits(calls_of(1, shape, most=False)) else ()


def _fit_into_budget(plan: Plan, budget: int, shape: Shape, second: bool) -> None:
    """Lower the pairs of ``plan`` until what is usual fits into ``budget`` calls, which are left to
    the numerics."""
    before = (plan.first, plan.second)
    left = budget
    plan.first = _affordable_kinds(plan.first, first_order_calls, shape, lambda c: c.total <= left)
    plan.first_calls = first_order_calls(len(plan.first), shape, most=False).total
    left -= plan.first_calls
    if second:
        plan.second = _affordable_kinds(
            plan.second, second_order_calls, shape, lambda c: c.total <= left
        )
        if plan.second:
            usual = second_order_calls(len(plan.second), shape, most=False).total
            left -= usual
            plan.reserved = usual + SECOND_ORDER_RESERVE
    own = torch_calls(shape, 1).total + (torch_calls(shape, 2).total if second else 0)
    plan.torch = own <= left
    if (plan.first, plan.second) != before:
        plan.reason = f"--max-calls {plan.budget}"


def _time_calls(subject: Subject) -> tuple[float, float]:
    """Seconds of one forward and of one backward call."""
    half = subject.run_s / 2
    if subject.run_s < SLOW_CALL_S:
        return half, half
    problem = subject.problem
    try:
        started = had_seconds()
        leaves, outputs = problem.linearize()
        forward_s = had_seconds() - started
        chosen = [item for item in outputs if item.differentiable]
        if chosen:
            problem.backward(chosen, leaves, [item.value.detach() for item in chosen])
    except OpRaised:
        return half, half
    return forward_s, had_seconds() - started - forward_s
