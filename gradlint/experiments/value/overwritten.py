"""Values that forward puts in one place, one over the other: which of them stays is not defined."""

from __future__ import annotations

from dataclasses import replace

import torch

from gradlint.experiments.subject import Subject
from gradlint.experiments.watched_forward import watch_forward
from gradlint.inputs.unlike import some_alike
from gradlint.model.sample import Sample, map_tensors
from gradlint.numerics.verdict import AGREES, ROUNDED
from gradlint.trace.op_io import OpRaised
from gradlint.trace.repeated_writes import RepeatedWrites


def right_without_overwriting(subject: Subject) -> bool:
    """Whether forward writes more than once to some element, since integers among its arguments are
    alike, and all gradients are right where these are different: PyTorch does not say which of the
    values stays, so that no gradient is right or wrong. Asked of arguments that gradlint chose."""
    watched = RepeatedWrites()
    if not watch_forward(subject, watched):
        return False
    other = _with_different_integers(subject.sample, subject.seed) if watched.found else None
    if other is None:
        return False
    there = Subject(subject.op, other, subject.settings)
    try:
        return all(verdict in (AGREES, ROUNDED) for verdict in there.first_order.verdicts)
    except (OpRaised, RuntimeError, ValueError, IndexError):
        return False
    finally:
        subject.problem.forward_calls += there.problem.forward_calls
        subject.problem.backward_calls += there.problem.backward_calls


def _with_different_integers(sample: Sample, seed: int) -> Sample | None:
    """``sample`` with a permutation in every row of integers of which some are alike; None where
    there is none."""
    generator = torch.Generator().manual_seed(seed)
    changed = False

    def different(tensor: torch.Tensor) -> torch.Tensor:
        nonlocal changed
        integers = not (tensor.is_floating_point() or tensor.is_complex())
        if not integers or tensor.dtype == torch.bool or not tensor.numel():
            return tensor
        if int(tensor.min()) >= 0 and not some_alike(tensor, "elements"):
            return tensor  # a negative one may be another that counts from the end
        changed = True
        count = tensor.shape[-1]
        room = max(int(tensor.max()) + 1, count)
        rows = [
            torch.randperm(room, generator=generator)[:count] for _ in tensor[..., :1].flatten()
        ]
        return torch.stack(rows).reshape(tensor.shape).to(tensor)

    args, kwargs = map_tensors((sample.args, sample.kwargs), different)
    return replace(sample, args=args, kwargs=kwargs) if changed else None
