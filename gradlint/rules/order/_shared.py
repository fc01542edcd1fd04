"""What the three second-order rules share: one attempt to differentiate twice."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from gradlint.numerics._decide import Decision
    from gradlint.rules._maps import SecondOrder
    from gradlint.rules._subject import Subject
    from gradlint.trace._problem import OpRaised

#: Texts by which an op, or PyTorch in its name, refuses to be differentiated twice.
REFUSALS = (
    "once_differentiable",
    "derivative for",
    "double backward",
    "double-backward",
    "second derivative",
    "does not support automatic differentiation for outputs with",
    "is not currently supported with create_graph",
    "create_graph=true",
    "not differentiable twice",
    "twice",
    "has no autograd formula",
    "autograd was not registered",
    "compatible with .grad()",  # nor, then, with create_graph
)


@dataclass
class Twice:
    """One attempt to differentiate twice.

    Args:
        reason: why there is nothing to judge, if so.
        map: the second-order map, or None.
        error: what raised, if anything.
        refused: whether ``error`` says openly that second derivatives are not supported.
        decision: verdicts on the map's values.
    """

    reason: str = ""
    map: SecondOrder | None = None
    error: OpRaised | None = None
    refused: bool = False
    decision: Decision | None = None


def differentiate_twice(subject: Subject) -> Twice:
    """Build and judge the second-order map of ``subject``, once for all three rules."""
    from gradlint.diagnosis._engine_errors import error_text
    from gradlint.numerics._decide import decide
    from gradlint.numerics._products import all_finite
    from gradlint.rules._allowance import decide_within
    from gradlint.rules._maps import second_order
    from gradlint.rules._plan import MORE
    from gradlint.rules.value._obstacles import obstacle
    from gradlint.trace._problem import OpRaised

    if subject.run.error is not None:
        return Twice(f"{subject.run.error.phase} raised")
    if not any(output.differentiable for output in subject.run.outputs):
        return Twice("no output is differentiable")
    reason = obstacle(subject)
    reason = reason or subject.plan.too_small
    if reason:
        return Twice(reason)
    gradients = subject.run.gradients or []
    if any(g is not None and not all_finite(g) for g in gradients):
        return Twice("a gradient is not finite: see GL302")
    try:
        found = second_order(subject.problem, seed=subject.seed)
    except OpRaised as raised:
        text = error_text(raised.error).lower()
        once = subject.op.intent.once_differentiable
        return Twice(
            "differentiating twice raises",
            error=raised,
            refused=once
            or isinstance(raised.error, NotImplementedError)
            or any(phrase in text for phrase in REFUSALS),
        )
    if found is None:
        return Twice("no input has a gradient")
    try:
        decision = decide_within(
            subject.plan,
            subject.problem,
            found.map,
            MORE,
            lambda map: decide(map, seed=subject.seed, kinds=subject.plan.second),
        )
    except OpRaised as raised:
        return Twice("differentiating twice raises", error=raised)
    return Twice(map=found, decision=decision)


def is_lost(twice: Twice, place: int) -> bool:
    """Whether the claimed second derivative of value ``place`` is nothing at all."""
    assert twice.map is not None
    assert twice.decision is not None
    return all(
        bool((gradients[place] == 0).all()) for gradients in twice.decision.judgement.gradients
    )
