"""Gradients in the tangent space of a group, which have fewer components than its elements.

Libraries for rotations and poses keep a quaternion, perhaps with a translation and a scale, and
return the gradient with respect to a small motion: 3, 4, 6 or 7 numbers, with a zero behind them,
so that the shape fits. What such a backward is given has that zero, too, and is not read there.
This is another convention, and no formula is wrong; nor is it the derivative of forward.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import torch

from gradlint.experiments.subject import Subject
from gradlint.model.report import Finding
from gradlint.trace.op_io import OpRaised

#: Numbers by which an element of a group is kept: a unit quaternion alone, with a scale, with a
#: translation, or with both.
SIZES = frozenset({4, 5, 7, 8})

#: Share of its size by which an input is moved to see whether outputs depend on it (heuristic).
MOVE = 2.0**-6

_HELP = (
    "the last component is always zero, as in a gradient with respect to a small motion in the"
    " tangent space of a group: if that is meant, document it, and compare it with differences"
    " along such motions; otherwise "
)


def soften_tangents(subject: Subject, findings: Sequence[Finding]) -> None:
    """Only warn about the gradients of an op that takes or returns elements of a group, where one
    of them is a vector of its tangent space."""
    wrong = [item for item in findings if item.severity == "error" and not item.grounds.explained]
    wide = [item for item in wrong if _beyond_one_component(subject, item)]
    if any(_is_tangent(subject, item) for item in wide) or (wide and _reads_tangent(subject)):
        for item in wrong:
            item.grounds = replace(item.grounds, explained="tangent")
            item.help = _HELP + item.help


def _beyond_one_component(subject: Subject, finding: Finding) -> bool:
    """Whether more elements of the gradient are wrong than one component has."""
    found = [item.value for item in subject.problem.inputs if item.name == finding.input]
    differing = finding.evidence.get("differing")
    if not found or found[0].dim() == 0 or not isinstance(differing, int):
        return False
    return differing > found[0].numel() // max(found[0].shape[-1], 1)


def _is_tangent(subject: Subject, finding: Finding) -> bool:
    """Whether the last component of the gradient is zero everywhere, and no other is."""
    position = [item.name for item in subject.problem.inputs].index(finding.input or "")
    for gradient in (
        subject.first_order.judgement.probe(0).gradients[position],
        _pulled(subject, [_other(v) for v in _cotangents(subject)], position),
    ):
        if gradient is None or gradient.dim() == 0 or gradient.shape[-1] not in SIZES:
            return False
        if bool(gradient[..., -1].any()) or not bool(gradient[..., :-1].any()):
            return False
    return True


def _reads_tangent(subject: Subject) -> bool:
    """Whether backward does not read the last component of the gradients of an output, although
    that component depends on the inputs."""
    cotangents = _cotangents(subject)
    outputs = {item.name: item.value for item in subject.run.outputs if item.differentiable}
    if len(outputs) != 1:
        return False
    name, value = next(iter(outputs.items()))
    if value.dim() == 0 or value.shape[-1] not in SIZES:
        return False
    other = cotangents[0].clone()
    other[..., -1] = _other(other[..., -1])
    try:
        moved = subject.problem.forward([v * (1.0 + MOVE) for v in subject.problem.values()])
    except OpRaised:
        return False
    there = {item.name: item.value for item in moved}
    if name not in there or torch.equal(there[name][..., -1], value[..., -1]):
        return False
    for position in range(len(subject.problem.inputs)):
        own, found = (_pulled(subject, vs, position) for vs in (cotangents, [other]))
        if own is None or found is None or not torch.equal(own, found):
            return False
    return True


def _cotangents(subject: Subject) -> list[torch.Tensor]:
    return list(subject.first_order.judgement.probe(0).cotangents)


def _other(cotangent: torch.Tensor) -> torch.Tensor:
    return -1.7 * cotangent + 0.3


def _pulled(
    subject: Subject, cotangents: Sequence[torch.Tensor], position: int
) -> torch.Tensor | None:
    names = [item.name for item in subject.run.outputs if item.differentiable]
    try:
        return subject.problem.pull(dict(zip(names, cotangents, strict=True)))[position]
    except (OpRaised, ValueError):
        return None
