"""Which axes of an op are independent: those of elementwise ops, and of batches."""

from __future__ import annotations

import torch

from gradlint.experiments.layout.cotangent_layouts import pull_from_graph
from gradlint.experiments.subject import Subject
from gradlint.inputs.resized import tensors_of, with_leading_axis, without_leading_axis
from gradlint.model.sample import Sample
from gradlint.trace.op_io import OpRaised


def is_elementwise(subject: Subject) -> bool:
    """Whether each output element depends on one element of each input, all of one shape, as far
    as a cotangent shows that is zero at all elements but one."""
    outputs = [item for item in subject.run.outputs if item.differentiable]
    shape = outputs[0].value.shape
    inputs = [item.value for item in subject.problem.inputs]
    if any(tensor.shape != shape for tensor in (*inputs, *(item.value for item in outputs))):
        return False
    vs = {item.name: torch.zeros_like(item.value.detach()) for item in outputs}
    for v in vs.values():
        v.view(-1)[0] = 1.0
    try:
        gradients = pull_from_graph(subject, vs, fresh=True)
    except OpRaised:
        return False
    found = [g.detach().reshape(-1)[1:] for g in gradients if g is not None]
    return not any(bool(gradient.count_nonzero()) for gradient in found)


def is_batch(subject: Subject) -> bool:
    """Whether the first axis of the first input is that of a batch: outputs have it and rows do not
    mix, as far as cotangents of the first and of the last row show; or outputs have no axes."""
    outputs = [item for item in subject.run.outputs if item.differentiable]
    position, first = next(
        ((k, i.value) for k, i in enumerate(subject.problem.inputs) if i.value.dim()), (0, None)
    )
    if first is None or any(
        y.value.dim() and y.value.shape[:1] != first.shape[:1] for y in outputs
    ):
        return False
    for row in (0, -1):
        vs = {item.name: torch.zeros_like(item.value.detach()) for item in outputs}
        for v in vs.values():
            if v.dim():
                v[row] = 1.0
        try:
            gradient = pull_from_graph(subject, vs, fresh=True)[position]
        except OpRaised:
            return False
        if gradient is not None and gradient.shape == first.shape:
            others = gradient.detach()[1:] if row == 0 else gradient.detach()[:-1]
            if bool(others.count_nonzero()):
                return False
    return True


def with_other_rank(subject: Subject) -> Sample:
    """The sample of an elementwise op with one axis, or two where it has one."""
    sample = subject.sample
    every = range(len(tensors_of(sample)))
    if subject.problem.inputs[0].value.dim() == 1:
        return with_leading_axis(sample, every, 2, seed=subject.seed)
    while any(tensor.dim() > 1 for tensor in tensors_of(sample)):
        deep = [k for k, tensor in enumerate(tensors_of(sample)) if tensor.dim() > 1]
        sample = without_leading_axis(sample, deep)
    return sample
