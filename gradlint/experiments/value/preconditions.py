"""What keeps the values of gradients from being judged, and what to do about it."""

from __future__ import annotations

import torch

from gradlint.experiments.finite.finiteness import constant_infinities
from gradlint.experiments.preconditions import blocked
from gradlint.experiments.subject import Subject
from gradlint.numerics.differences import significand_bits
from gradlint.numerics.products import dense, widened
from gradlint.numerics.verdict import TOLERATED


def obstacle(subject: Subject) -> str:
    """Why nothing can be judged on this sample although forward and backward ran; else ""."""
    run, problem = subject.run, subject.problem
    reason = blocked(subject)
    if reason and not _taken_as_zero(subject):
        return f"{_not_finite(subject) or reason}: nothing was judged"
    if problem.inputs and all(item.value.numel() == 0 for item in problem.inputs):
        return "every input is empty: nothing was judged; give inputs with elements"
    if all(item.value.numel() == 0 for item in run.outputs if item.differentiable):
        return "every output is empty: nothing was judged; give inputs with elements"
    return _irreproducible(subject)


def _taken_as_zero(subject: Subject) -> bool:
    """Whether all that is not finite in the outputs is infinite whatever the inputs, as behind a
    mask: those elements are taken as zero from now on, and the others can be judged."""
    problem = subject.problem
    if problem.zeroed:
        return True
    masks = {}
    for output in subject.run.outputs:
        if not output.differentiable or output.value.is_nested:
            continue
        finite = torch.isfinite(output.value.detach())
        if bool(finite.all()):
            continue
        constant = constant_infinities(subject, output)
        if constant is None or not bool(finite.any()) or bool((~finite & ~constant).any()):
            return False
        masks[output.name] = constant
    problem.zeroed = masks
    return bool(masks)


def _not_finite(subject: Subject) -> str:
    """The first input that holds NaN or Inf, and where."""
    named = subject.sample.named_tensors(subject.op.signature)
    for name, value in [*named, *((item.name, item.value) for item in subject.problem.parameters)]:
        if value.is_nested or not (value.is_floating_point() or value.is_complex()):
            continue
        bad = (~torch.isfinite(dense(value.detach()))).nonzero()
        if len(bad):
            at = bad[0].tolist()
            shown = dense(value.detach())[tuple(at)].item()
            return f"an input is not finite (`{name}` is {shown} at {at}; give finite ones)"
    return ""


def _irreproducible(subject: Subject) -> str:
    """Whether two calls with the same inputs and the same seeds gave different outputs."""
    first = [item for item in subject.run.outputs if item.differentiable]
    again = subject.first_order_map.outputs
    if len(first) != len(again):
        return "forward returns other outputs when called again: nothing was judged"
    for item, other in zip(first, again, strict=True):
        if item.value.is_nested or not item.value.numel():
            continue
        if item.value.shape != other.shape:
            shapes = f"{tuple(item.value.shape)} and {tuple(other.shape)}"
            return f"`{item.name}` has shapes {shapes} in two calls with the same inputs"
        here, there = widened(item.value), widened(other)
        if item.name in subject.problem.zeroed:
            here = here.masked_fill(subject.problem.zeroed[item.name], 0.0)
        top, off = float(here.abs().max()), float((here - there).abs().max())
        bits = significand_bits(item.value.dtype)
        if off > TOLERATED[max(known for known in TOLERATED if known <= bits)] * top:
            return (
                f"forward gives another `{item.name}` when called again with the same inputs and "
                "seeds: nothing was judged; let it draw from torch's generator, or from one that "
                "is an argument or an attribute of the op"
            )
    return ""


def unmoved(value: torch.Tensor) -> str:
    """What of an input was not moved, in words; else ""."""
    if not value.numel():
        return "is empty: nothing to judge"
    still = int((~torch.isfinite(value)).sum())
    return f"{still} of {value.numel()} elements are not finite and were not moved" if still else ""


def why_unsure(subject: Subject) -> str:
    """What is known of why an input could not be judged."""
    problem = subject.problem
    if problem.changed_outputs:
        return changed(subject)
    if problem.raised:
        return (
            f"forward raises beside the sample ({problem.raised[0]}); give inputs inside its domain"
        )
    return "too noisy or not smooth there"


def changed(subject: Subject) -> str:
    """How outputs changed in shape or dtype while the inputs were moved; "" where they did not."""
    found = subject.problem.changed_outputs
    if not found:
        return ""
    return (
        f"forward's outputs change with the values of the inputs ({found[0]}); give inputs away "
        "from where they do"
    )
