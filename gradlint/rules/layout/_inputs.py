"""Calls with inputs that lie in memory otherwise: outputs and VJP."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import torch

from gradlint.numerics._products import widened
from gradlint.rules._same import ROUNDINGS, compared, jitter, share_of
from gradlint.rules.layout._seen import Seen, compared_inputs
from gradlint.trace._altered import pull_altered
from gradlint.trace._layouts import relaid
from gradlint.trace._problem import OpRaised, Output

if TYPE_CHECKING:
    from gradlint.rules._same import Difference
    from gradlint.rules._subject import Subject

#: Tensors of which each is laid out alone to find the one that matters; of more, the first ones.
MOST_ALONE = 6

#: Layouts that the parameters of a module do not take: no caller hands them over, and what makes
#: them (a transposition, channels_last, a slice of a fused weight) leaves no gaps between elements.
NOT_OF_MODULES = ("strided",)


def tensors(subject: Subject) -> list[tuple[str, torch.Tensor]]:
    """Everything that can be laid out: inputs, and the tensors of the sample that are none."""
    inputs = [(item.name, item.value) for item in subject.problem.inputs]
    known = {value.data_ptr() for _, value in inputs}
    named = subject.sample.named_tensors(subject.op.signature)
    return inputs + [
        (name, value.detach())
        for name, value in named
        if value.layout == torch.strided
        and not value.is_nested
        and value.numel()
        and value.data_ptr() not in known
    ]


def that_change(subject: Subject, layout: str) -> list[str]:
    """Names of the tensors that ``layout`` lays out otherwise, and that may lie so."""
    own = {item.name for item in subject.problem.parameters} if layout in NOT_OF_MODULES else set()
    return [
        name
        for name, value in tensors(subject)
        if name not in own and relaid(value, layout) is not None
    ]


def with_inputs(subject: Subject, layout: str, names: list[str] | None = None) -> Seen:
    """Outputs and VJP with the tensors ``names`` in ``layout``; default all that have it."""
    baseline, problem = subject.baseline, subject.problem
    assert baseline is not None
    known = {value.data_ptr(): name for name, value in tensors(subject)}

    def place(position: int, value: torch.Tensor) -> torch.Tensor | None:
        wanted = names is None or baseline.names[position] in names
        return relaid(value, layout) if wanted else None

    def constant(value: torch.Tensor) -> torch.Tensor | None:
        if value.layout != torch.strided or value.is_nested:
            return None
        wanted = names is None or known.get(value.data_ptr()) in names
        return relaid(value, layout) if wanted else None

    try:
        outputs, gradients = pull_altered(
            problem, baseline.cotangents, inputs=place, constants=constant
        )
    except OpRaised as raised:
        return Seen(layout, error=raised)
    return Seen(
        layout,
        baseline.differences(gradients, among=compared_inputs(baseline)),
        _other_outputs(subject, outputs),
    )


def _other_outputs(subject: Subject, outputs: list[Output]) -> list[Difference]:
    """Outputs that are not the baseline's, beyond what rounding may do to them: where sums are
    rounded, an ``argmax`` or a ``floor`` of them may jump."""
    if not any(_difference(subject, k, item, ()) for k, item in enumerate(outputs)):
        return []
    problem = subject.problem
    points = [[jitter(v, subject.seed + k) for v in problem.values()] for k in (1, 2)]
    try:
        moved = [problem.forward(values) for values in (problem.values(), *points)]
    except OpRaised:  # the sample lies at the edge of the domain
        moved = []
    found = (_difference(subject, k, item, moved) for k, item in enumerate(outputs))
    return [item for item in found if item is not None]


def _difference(
    subject: Subject, number: int, item: Output, moved: Sequence[Sequence[Output]]
) -> Difference | None:
    """Where output ``number`` is not the baseline's.

    Args:
        moved: outputs of forward with inputs moved by no more than a roundoff.
    """
    expected = subject.baseline.outputs.get(item.name) if subject.baseline else None
    if expected is None:
        return None
    wide = widened(expected)
    allowed = torch.zeros(wide.shape, dtype=torch.float64, device=wide.device)
    if wide.numel() and (expected.is_floating_point() or expected.is_complex()):
        top = torch.nan_to_num(wide.abs(), 0.0, 0.0, 0.0).max()
        allowed = allowed + share_of(expected.dtype) * top
    for outputs in moved:
        other = next((o.value for o in outputs if o.name == item.name), None)
        if other is not None and other.shape == wide.shape and other.numel():
            gap = torch.nan_to_num((widened(other.detach()) - wide).abs(), 0.0, 0.0, 0.0)
            allowed = allowed + ROUNDINGS * (gap + gap.median())
    return compared(number, item.name, item.value.detach(), expected, allowed)


def culprits(subject: Subject, layout: str, names: list[str]) -> tuple[list[str], Seen | None]:
    """Of the tensors ``names``, those that alone in ``layout`` change something, and what was seen
    of the first; all of them where none does alone."""
    alone: list[str] = []
    first: Seen | None = None
    for name in names[:MOST_ALONE] if len(names) > 1 else ():
        seen = with_inputs(subject, layout, [name])
        if not seen.same:
            alone.append(name)
            first = first or seen
    return (alone or names), first
