"""Is an op elementwise at its sample?"""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch

from gradlint.rules.layout._cotangents import pulled
from gradlint.trace._problem import OpRaised

if TYPE_CHECKING:
    from gradlint.rules._subject import Subject


def elementwise(subject: Subject) -> bool:
    """Whether one element of the output depends on one element of each input, all of its shape, as
    far as a cotangent tells that is zero at all others."""
    outputs = [item for item in subject.run.outputs if item.differentiable]
    shape = outputs[0].value.shape
    inputs = [item.value for item in subject.problem.inputs]
    if any(tensor.shape != shape for tensor in (*inputs, *(item.value for item in outputs))):
        return False
    vs = {item.name: torch.zeros_like(item.value.detach()) for item in outputs}
    for v in vs.values():
        v.view(-1)[0] = 1.0
    try:
        gradients = pulled(subject, vs, fresh=True)
    except OpRaised:
        return False
    found = [g.detach().reshape(-1)[1:] for g in gradients if g is not None]
    return not any(bool(gradient.count_nonzero()) for gradient in found)
