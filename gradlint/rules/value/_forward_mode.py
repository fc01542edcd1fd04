"""Forward mode: what an op's jvp returns, and what the function really does along a line."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import torch
from torch.autograd import forward_ad

from gradlint.numerics._decide import Decision, decide
from gradlint.numerics._judge import Map
from gradlint.numerics._products import dense, real_dot, widened
from gradlint.trace._problem import OpRaised

if TYPE_CHECKING:
    from gradlint.rules._subject import Subject
    from gradlint.trace._problem import Problem

#: Kinds of direction on a line, where only the sign is free: one for each cotangent.
_KINDS = ("signs", "signs", "signs")

#: Steps of the differences that show where a tangent is wrong, by dtype of the output (heuristic:
#: between truncation and rounding for moves of the size of the inputs).
STEPS = {torch.float64: 2.0**-14, torch.float32: 2.0**-7}


def functions_with_jvp(subject: Subject) -> list[type]:
    """Python Functions of the graph that define ``jvp``, the op's own first."""
    inherited = torch.autograd.Function.jvp
    found = [subject.op.function, *(node.function for node in subject.run.nodes)]
    unique = dict.fromkeys(item for item in found if item is not None)
    return [item for item in unique if getattr(item, "jvp", inherited) is not inherited]


def push(
    problem: Problem,
    values: Sequence[torch.Tensor],
    tangents: Sequence[torch.Tensor | None],
    names: Sequence[str],
) -> list[torch.Tensor | None]:
    """Tangents of the outputs ``names`` at ``values``; None where an output has none.

    Raises:
        OpRaised: when forward, jvp or PyTorch between them raises.
    """
    with forward_ad.dual_level():
        leaves = []
        for value, tangent in zip(values, tangents, strict=True):
            leaf = value.detach().clone()
            leaves.append(
                leaf
                if tangent is None
                else forward_ad.make_dual(leaf, tangent.to(value.dtype, copy=True))
            )
        found = {item.name: item.value for item in problem.connect(leaves)}
        result: list[torch.Tensor | None] = []
        for name in names:
            tangent = forward_ad.unpack_dual(found[name]).tangent if name in found else None
            result.append(None if tangent is None else dense(tangent.detach()).clone())
        return result


def along_line(
    subject: Subject, position: int, u: torch.Tensor, names: Sequence[str], seed: int
) -> Decision:
    """Whether jvp along ``u`` in input ``position`` is the derivative of t ↦ f(x + t·u)."""
    problem = subject.problem
    start = widened(problem.inputs[position].value)

    def at(t: torch.Tensor) -> list[torch.Tensor]:
        values = problem.values()
        values[position] = (start + t.to(start.device) * u).to(values[position].dtype)
        return values

    def evaluate(values: Sequence[torch.Tensor]) -> list[torch.Tensor] | None:
        try:
            found = {item.name: item.value.detach() for item in problem.forward(at(values[0]))}
        except OpRaised:
            return None
        return [found[name] for name in names] if set(names) <= set(found) else None

    def pull_at(
        values: Sequence[torch.Tensor], cotangents: Sequence[torch.Tensor]
    ) -> list[torch.Tensor | None]:
        tangents: list[torch.Tensor | None] = [None] * len(problem.inputs)
        tangents[position] = u
        pushed = push(problem, at(values[0]), tangents, names)
        slope = sum(
            real_dot(v, tangent)
            for v, tangent in zip(cotangents, pushed, strict=True)
            if tangent is not None
        )
        return [torch.tensor([slope], dtype=torch.float64)]

    outputs = evaluate([torch.zeros(1, dtype=torch.float64)])
    assert outputs is not None
    line = Map([torch.zeros(1, dtype=torch.float64)], outputs, evaluate, pull_at)
    return decide(line, seed=seed, kinds=_KINDS)


def differences(
    subject: Subject, position: int, u: torch.Tensor, names: Sequence[str]
) -> list[torch.Tensor] | None:
    """(f(x + h·u) − f(x − h·u)) / 2h of each output, element by element; float64."""
    problem = subject.problem
    value = problem.inputs[position].value
    h = STEPS[torch.float32 if value.dtype in (torch.float32, torch.complex64) else torch.float64]
    sides: list[dict[str, Any]] = []
    for sign in (1.0, -1.0):
        values = problem.values()
        values[position] = (widened(value) + sign * h * u).to(value.dtype)
        try:
            sides.append({item.name: widened(item.value) for item in problem.forward(values)})
        except OpRaised:
            return None
    if not all(name in side for side in sides for name in names):
        return None
    return [(sides[0][name] - sides[1][name]) / (2.0 * h) for name in names]
