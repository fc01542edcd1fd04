"""Is an op elementwise at its sample?"""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch

from gradlint.rules.layout._cotangents import pulled
from gradlint.trace._problem import OpRaised

if TYPE_CHECKING:
    from gradlint.rules._subject import Subject


def elementwise(subject: Subject) -> bool:
    """Whether one element of the output depends on one element of each input of its shape: as far
    as a cotangent tells that is zero at all others. Inputs of other shapes must broadcast."""
    outputs = [item for item in subject.run.outputs if item.differentiable]
    shape = outputs[0].value.shape
    inputs = [item.value for item in subject.problem.inputs]
    if any(item.value.shape != shape for item in outputs):
        return False
    try:
        if torch.broadcast_shapes(shape, *(value.shape for value in inputs)) != shape:
            return False
    except RuntimeError:
        return False
    if not any(value.shape == shape for value in inputs):
        return False
    vs = {item.name: torch.zeros_like(item.value.detach()) for item in outputs}
    for v in vs.values():
        v.view(-1)[0] = 1.0
    try:
        gradients = pulled(subject, vs, fresh=True)
    except OpRaised:
        return False
    full = [g for g, x in zip(gradients, inputs, strict=True) if g is not None and x.shape == shape]
    return all(not bool(g.detach().reshape(-1)[1:].count_nonzero()) for g in full)
