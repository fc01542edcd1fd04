"""An orthonormal basis of which only what it spans is meant.

The null space of a matrix, the leading singular vectors, the eigenvectors of equal eigenvalues: the
vectors by themselves are arbitrary, and functions of such a basis depend on what it spans. A
backward that is made for those leaves out how the vectors turn among themselves. That part of a
motion Q' is QᵀQ'; the rest, (I - QQᵀ) Q', moves what is spanned. Where the gradient is right for
the rest, it is right for every function of the subspace, and no derivative of the basis itself.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import torch

from gradlint.experiments.subject import Subject
from gradlint.model.report import Finding
from gradlint.numerics.judge import judge
from gradlint.numerics.map import Map
from gradlint.numerics.products import all_finite
from gradlint.numerics.verdict import AGREES, ROUNDED
from gradlint.trace.op_io import OpRaised

#: How far QᵀQ may be from the identity, for a factorisation in float64 (heuristic: a thousand
#: roundings at usual sizes).
ORTHONORMAL = 1e-10

_CAUSE = (
    "the gradient is right for functions of what the columns of `{name}` span, and leaves out how"
    " they turn among themselves"
)
_HELP = (
    "if only functions of the subspace are meant, say so in the documentation; otherwise add the"
    " motion of the vectors within what they span"
)


def soften_subspaces(subject: Subject, findings: Sequence[Finding]) -> None:
    """Only warn about gradients that are wrong for an orthonormal basis and right for what it
    spans."""
    wrong = [item for item in findings if item.severity == "error" and not item.grounds.explained]
    if not wrong:
        return
    function = subject.first_order_map
    bases = [k for k, value in enumerate(function.outputs) if _is_basis(value)]
    positions = {item.name: k for k, item in enumerate(subject.problem.inputs)}
    asked = [positions[item.input] for item in wrong if item.input in positions]
    if not bases or not asked:
        return
    try:
        judged = judge(_beside_the_span(function, bases), seed=subject.seed, inputs=asked)
    except OpRaised:
        return
    right = {item.index for item in judged.inputs if item.verdict in (AGREES, ROUNDED)}
    names = [item.name for item in subject.run.outputs if item.differentiable]
    for item in wrong:
        if positions.get(item.input or "") in right:
            item.grounds = replace(item.grounds, explained="subspace")
            item.cause_text = _CAUSE.format(name=names[bases[0]])
            item.help = _HELP


def _is_basis(value: torch.Tensor) -> bool:
    """Whether the columns are orthonormal: several, and fewer than their length. All of a space
    spans it whatever happens, and a single unit vector turns in no other way."""
    if value.dim() < 2 or value.dtype != torch.float64 or value.layout != torch.strided:
        return False
    if not 2 <= value.shape[-1] < value.shape[-2] or not value.numel() or not all_finite(value):
        return False
    eye = torch.eye(value.shape[-1], dtype=value.dtype, device=value.device)
    return float((value.mT @ value - eye).abs().max()) <= ORTHONORMAL


def _beside_the_span(function: Map, bases: Sequence[int]) -> Map:
    """``function`` with what lies in the span of each basis, as it is at the point, left out."""
    at = {k: function.outputs[k].detach().clone() for k in bases}

    def outside(tensors: Sequence[torch.Tensor]) -> list[torch.Tensor]:
        return [t - at[k] @ (at[k].mT @ t) if k in at else t for k, t in enumerate(tensors)]

    def evaluate(values: Sequence[torch.Tensor]) -> Sequence[torch.Tensor] | None:
        found = function.evaluate(values)
        return None if found is None else outside(found)

    def pull_at(
        values: Sequence[torch.Tensor], cotangents: Sequence[torch.Tensor]
    ) -> Sequence[torch.Tensor | None]:
        return function.pull_at(values, outside(cotangents))

    outputs = outside(function.outputs)
    return replace(function, outputs=outputs, evaluate=evaluate, pull_at=pull_at, twin=None)
