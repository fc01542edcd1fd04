"""Second derivatives at special values of inputs, where backward guards against these values.

``torch.where(x == 0, 1, sin(x) / x)`` returns what is right at zero; its derivative does not,
because the quotient is differentiated there too, and zero times infinity is NaN.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import torch

from gradlint.experiments.finite.extremes import ExtremePoint, make_extremes
from gradlint.experiments.one_sided_derivatives import DerivativePair, OneSidedDerivatives
from gradlint.experiments.subject import Subject
from gradlint.numerics.products import all_finite, dense, widened
from gradlint.trace.op_io import OpRaised

#: Extremes at which second derivatives are looked at: guards are for zeros.
POINTS = ("zeros", "single")

#: Elements at which the derivative of backward is measured, of those where it is NaN.
LOOKED_AT = 3

#: One-sided derivatives that differ by less, relative to the steepest slope seen, are those of a
#: smooth function (heuristic, as for first derivatives).
SMOOTH = 1e-2


@dataclass
class NanSecondDerivative:
    """A second derivative that is NaN where the gradient is smooth.

    Args:
        position: of the input.
        index: of the element.
        words: which values the inputs have.
        measured: the derivative of what backward returns.
    """

    position: int
    index: list[int]
    words: str
    measured: float


class _OfBackward(OneSidedDerivatives):
    """One-sided derivatives of ⟨w, g(x)⟩, where g is what backward returns."""

    def _weights(self, subject: Subject) -> dict[str, torch.Tensor]:
        self._given = {name: widened(v) for name, v in subject.run.cotangents.items()}
        return {str(k): widened(w) for k, w in _directions(subject).items()}

    def _outputs(self, values: list[torch.Tensor]) -> dict[str, torch.Tensor] | None:
        try:
            found = self._problem.pull(self._given, values)
        except OpRaised:
            return None
        return {str(k): widened(dense(g)) for k, g in enumerate(found) if g is not None}


def nan_second_derivatives(subject: Subject) -> Iterator[NanSecondDerivative]:
    """Second derivatives that are NaN at special values, at most one for an input.

    One forward, one backward and one double backward call for each of :data:`POINTS`; more only
    where something is NaN.
    """
    told: set[int] = set()
    for name in POINTS:
        extreme = subject.once(make_extremes).named(name)
        if extreme is None or not extreme.finite or extreme.gradients is None:
            continue
        if not all(g is None or all_finite(dense(g)) for g in extreme.gradients):
            continue  # GL302 says so
        for found in _at(subject, extreme):
            if found.position not in told:
                told.add(found.position)
                yield found


def _directions(subject: Subject) -> dict[int, torch.Tensor]:
    """What gradients are weighed with: random numbers for every input that has one."""
    generator = torch.Generator().manual_seed(subject.seed)
    return {
        k: torch.randn(gradient.shape, generator=generator, dtype=torch.float64).to(gradient.device)
        for k, gradient in enumerate(subject.run.gradients or [])
        if gradient is not None
    }


def _twice(subject: Subject, values: list[torch.Tensor]) -> list[torch.Tensor | None]:
    problem, cotangents = subject.problem, subject.run.cotangents
    try:
        leaves, outputs = problem.linearize(values)
        grads = problem.pull_from(outputs, leaves, cotangents, create_graph=True)
        ws = _directions(subject)
        pairs = [(g, ws[k]) for k, g in enumerate(grads) if g is not None and k in ws]
        pairs = [(g, w) for g, w in pairs if g.requires_grad and g.shape == w.shape]
        if not pairs:
            return []
        return problem.backward([g for g, _ in pairs], leaves, [w.to(g.dtype) for g, w in pairs])
    except OpRaised:
        return []


def _at(subject: Subject, extreme: ExtremePoint) -> Iterator[NanSecondDerivative]:
    values = extreme.make()
    slopes: OneSidedDerivatives | None = None
    for position, found in enumerate(_twice(subject, values)):
        if found is None or not bool(dense(found).isnan().any()):
            continue
        slopes = slopes or _OfBackward(subject, None, values)
        if extreme.name == "zeros" and not _is_smooth(slopes.along([position])):
            continue  # smooth along its axes alone, as the norm's square root of a product
        for where in dense(found).isnan().nonzero().tolist()[:LOOKED_AT]:
            seen = slopes.at(position, where)
            if _is_smooth(seen) and seen.right is not None:
                words = extreme.words_at(position, where)
                yield NanSecondDerivative(position, where, words, seen.right)
                break


def _is_smooth(seen: DerivativePair) -> bool:
    if seen.right is None or seen.left is None or seen.unbounded:
        return False
    return abs(seen.right - seen.left) <= SMOOTH * seen.scale
