"""Whether a wrong gradient is due to the memory layout of the sample's own tensors."""

from __future__ import annotations

from dataclasses import replace

import torch

from gradlint.diagnosis.cause import Cause
from gradlint.experiments.differentiable_maps import first_order
from gradlint.experiments.subject import Subject
from gradlint.model.sample import map_tensors
from gradlint.numerics.decide import decide
from gradlint.numerics.verdict import AGREES
from gradlint.trace.op_io import OpRaised


def layout_at_fault(subject: Subject, position: int) -> Cause | None:
    """The cause that the gradient of input ``position``, which is wrong at the sample, is right
    where the same values lie contiguously; None where they do, or it is wrong there too."""
    problem, sample = subject.problem, subject.sample
    names = [
        name
        for name, tensor in sample.named_tensors(subject.op.signature)
        if tensor.layout == torch.strided and not tensor.is_contiguous()
    ]
    if not names:
        return None
    args, kwargs = map_tensors((sample.args, sample.kwargs), _contiguous)
    there = problem.at(replace(sample, args=args, kwargs=kwargs))
    try:
        decision = decide(first_order(there), seed=subject.seed, inputs=[position])
    except OpRaised:
        return None
    finally:
        problem.forward_calls += there.forward_calls
        problem.backward_calls += there.backward_calls
    if decision.verdicts != [AGREES]:
        return None
    shown = " and ".join(f"`{name}`" for name in names)
    verb = "is" if len(names) == 1 else "are"
    return Cause(
        "layout-ignored",
        f"layout ignored: where {shown} {verb} contiguous in memory, with the same values, the "
        "gradient is right",
        "call .contiguous() on inputs and saved tensors whose memory is read, or use their strides",
    )


def _contiguous(tensor: torch.Tensor) -> torch.Tensor:
    if tensor.layout != torch.strided or tensor.is_contiguous():
        return tensor
    return (
        tensor.detach()
        .clone(memory_format=torch.contiguous_format)
        .requires_grad_(tensor.requires_grad)
    )
