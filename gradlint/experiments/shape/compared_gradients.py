"""What the three rules on shapes, dtypes and devices compare."""

from __future__ import annotations

import torch

from gradlint.experiments.returned_gradients import (
    BACKWARD_NOT_SEEN,
    ReturnedGradient,
    finished_nodes,
    function_in,
    rejection,
    returned_gradients,
)
from gradlint.experiments.subject import Subject
from gradlint.model.report import Finding
from gradlint.model.rule import Rule

Shape = tuple[int, ...]


def returned_tensors(subject: Subject) -> tuple[list[ReturnedGradient], str]:
    """Gradients returned as tensors for inputs that need one, or why there are none to see."""
    nodes = finished_nodes(subject)
    if not nodes:
        return [], BACKWARD_NOT_SEEN
    if rejection(subject, "wrong-number-of-gradients") is not None:
        # Which value belongs to which input is unknown then.
        return [], "the number of gradients is wrong: see GL101"
    if any(isinstance(node.returned, list) for node in nodes):
        return [], "backward did not return a tuple: see GL104"
    return [
        item
        for item in returned_gradients(subject)
        if item.needed and item.meta is not None and isinstance(item.value, torch.Tensor)
    ], ""


def returned_shapes(subject: Subject) -> tuple[list[tuple[ReturnedGradient, Shape, Shape]], str]:
    """Each returned gradient with its shape and its input's; nested tensors are left out."""
    items, note = returned_tensors(subject)
    found = []
    for item in items:
        if item.value.is_nested or item.meta is None:
            continue
        found.append((item, tuple(item.value.shape), item.meta.shape))
    return found, note


def reduces_to(shape: Shape, wanted: Shape) -> bool:
    """Whether the engine can sum ``shape`` to ``wanted``: broadcasting ``wanted`` gives it."""
    if len(shape) < len(wanted):
        return False
    trailing = shape[len(shape) - len(wanted) :]
    return all(have == want or want == 1 for have, want in zip(trailing, wanted, strict=True))


def engine_finding(subject: Subject, rule: Rule, slug: str, what: str) -> list[Finding]:
    """A finding from the engine's text alone, where the raw gradients could not be seen."""
    rejected = rejection(subject, slug)
    if rejected is None:
        return []
    name = function_in(rejected.text, subject.op.name)
    return [
        subject.finding(
            rule,
            f"backward of {name} returned {what}",
            evidence={"original": rejected.text},
            help=rejected.fix,
        )
    ]
