"""VJPs of cotangents in other memory layouts, all from one forward.

Several rules pass the same cotangents in other layouts. The graph of one forward serves them all; a
difference is confirmed with a fresh forward before it counts.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from weakref import WeakKeyDictionary

import torch

from gradlint.experiments.baseline_comparison import (
    Baseline,
    Difference,
    compare,
    make_baseline,
    share_of,
)
from gradlint.experiments.subject import Subject
from gradlint.numerics.products import widened
from gradlint.trace.altered import pull_altered
from gradlint.trace.layouts import relaid
from gradlint.trace.op_io import OpRaised, Output

_Gradients = list["torch.Tensor | None"]

_GRAPHS: WeakKeyDictionary[Subject, tuple[list[torch.Tensor], list[Output]]] = WeakKeyDictionary()


@dataclass(frozen=True)
class AlteredCall:
    """One altered call.

    Args:
        layout: memory layout of the tensors, a name of ``LAYOUTS``.
        differences: gradients that are not the baseline's.
        outputs: outputs that are not the baseline's.
        error: what it raised.
    """

    layout: str
    differences: list[Difference] = field(default_factory=list)
    outputs: list[Difference] = field(default_factory=list)
    error: OpRaised | None = None

    @property
    def same(self) -> bool:
        """Whether nothing changed."""
        return self.error is None and not self.differences and not self.outputs


def in_layout(cotangents: dict[str, torch.Tensor], layout: str) -> dict[str, torch.Tensor] | None:
    """``cotangents`` in ``layout``, or copied where one can't take it; None where none can."""
    found = {name: relaid(value, layout) for name, value in cotangents.items()}
    if all(value is None for value in found.values()):
        return None
    return {
        name: cotangents[name].clone() if value is None else value for name, value in found.items()
    }


def call_with_cotangents(subject: Subject, layout: str) -> AlteredCall | None:
    """The VJP of the baseline's cotangents in ``layout``; None where they have no such layout."""
    baseline = subject.once(make_baseline)
    if baseline is None or in_layout(baseline.cotangents, layout) is None:
        return None
    among = baseline.comparable_inputs()

    def seen(*, fresh: bool) -> AlteredCall:
        vs = in_layout(baseline.cotangents, layout) or {}
        try:
            gradients = pull_from_graph(subject, vs, fresh=fresh)
        except OpRaised as raised:
            return AlteredCall(layout, error=raised)
        return AlteredCall(layout, baseline.differences(gradients, among=among))

    first = seen(fresh=False)
    return first if first.same else seen(fresh=True)


def call_with_ones(subject: Subject, layout: str) -> AlteredCall | None:
    """The same for cotangents of ones, compared with contiguous cotangents of ones."""
    baseline = subject.once(make_baseline)
    if baseline is None:
        return None
    ones = {name: torch.ones_like(value) for name, value in baseline.cotangents.items()}
    if in_layout(ones, layout) is None:
        return None

    def seen(*, fresh: bool) -> AlteredCall:
        plain = {name: value.clone() for name, value in ones.items()}
        try:
            expected = pull_from_graph(subject, plain, fresh=fresh)
        except OpRaised:  # not caused by the layout
            return AlteredCall(layout)
        try:
            gradients = pull_from_graph(subject, in_layout(ones, layout) or {}, fresh=fresh)
        except OpRaised as raised:
            return AlteredCall(layout, error=raised)
        return AlteredCall(layout, _differences(baseline, gradients, expected))

    first = seen(fresh=False)
    return first if first.same else seen(fresh=True)


def pull_from_graph(
    subject: Subject, cotangents: dict[str, torch.Tensor], *, fresh: bool
) -> _Gradients:
    """The VJP of exactly these ``cotangents``, from a forward of its own where ``fresh``."""
    problem = subject.problem
    if fresh:
        return pull_altered(problem, cotangents, exact=True)[1]
    if subject not in _GRAPHS:
        leaves, outputs = problem.linearize()
        _GRAPHS[subject] = leaves, [item for item in outputs if item.differentiable]
    leaves, outputs = _GRAPHS[subject]
    chosen = [item for item in outputs if item.name in cotangents]
    vs = [cotangents[item.name] for item in chosen]
    return problem.backward(chosen, leaves, vs, retain_graph=True, as_given=True)


def _differences(
    baseline: Baseline, gradients: _Gradients, expected: _Gradients
) -> list[Difference]:
    """Like ``Baseline.differences``, but compared with ``expected``. A sum that cancels is allowed
    the rounding of one that does not."""
    found = []
    for position in baseline.comparable_inputs():
        want, allowed = expected[position], baseline.allowed(position)
        if want is not None and allowed is not None and want.numel():
            top = torch.nan_to_num(widened(want).abs(), 0.0, 0.0, 0.0).max()
            allowed = allowed + share_of(want.dtype) * top
        name = baseline.names[position]
        difference = compare(position, name, gradients[position], want, allowed)
        if difference is not None:
            found.append(difference)
    return found
