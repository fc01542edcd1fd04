"""Inputs in an unusual layout, and what is another than at a point."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import torch

from gradlint.rules.transforms._point import (
    Point,
    gradient_difference,
    here,
    output_difference,
)
from gradlint.trace._altered import pull_altered
from gradlint.trace._layouts import relaid
from gradlint.trace._problem import OpRaised, Output

if TYPE_CHECKING:
    from gradlint.rules._same import Difference
    from gradlint.rules._subject import Subject

#: What an input is handed over as, by position and value; None for as it is.
Layout = Callable[[int, torch.Tensor], "torch.Tensor | None"]

Pulled = tuple[list[Output], "list[torch.Tensor | None]"]


def relaid_input(position: int, value: torch.Tensor) -> torch.Tensor | None:
    """``value`` as it lies in memory once transposed, or with gaps; None where it can't."""
    found = relaid(value, "transposed")
    return relaid(value, "strided") if found is None else found


def unlike(subject: Subject, got: Pulled, point: Point) -> list[tuple[Difference, bool]]:
    """Outputs (True) that differ from ``point``, or else gradients (False) that do."""
    outputs, gradients = got
    wrong = [
        output_difference(subject, item.name, item.value.detach(), point.outputs[item.name])
        for item in outputs
        if item.name in point.outputs
    ]
    if any(wrong):
        return [(d, True) for d in wrong if d is not None]
    pairs = zip(gradients, point.gradients, strict=True)
    worse = [gradient_difference(subject, k, new, old) for k, (new, old) in enumerate(pairs)]
    return [(d, False) for d in worse if d is not None]


def tried_layout(subject: Subject) -> Layout | None:
    """Inputs that are not contiguous, where a plain call takes them as what they are (else GL703
    tells)."""
    try:
        plain = pull_altered(subject.problem, subject.run.cotangents, inputs=relaid_input)
    except OpRaised:
        return None
    return None if unlike(subject, plain, here(subject)) else relaid_input
