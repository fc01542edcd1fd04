"""Why a rule can't judge a subject.

There is one function for each kind of experiment. Each returns the reason in words, or "" where the
experiment can be made. A reason names the rule that says more, where there is one.
"""

from __future__ import annotations

import torch

from gradlint.experiments.baseline_comparison import make_baseline
from gradlint.experiments.finiteness import constant_infinities
from gradlint.experiments.judge_at_other_inputs import judged_inputs
from gradlint.experiments.state.guarded_run import make_guarded
from gradlint.experiments.state.repeated_calls import NONDETERMINISTIC_NOTE, is_nondeterministic
from gradlint.experiments.subject import Subject
from gradlint.experiments.unsupported_dtype import unsupported_dtype
from gradlint.inputs.resized import resizable
from gradlint.model.sample import holds_tensors
from gradlint.numerics.differences import significand_bits
from gradlint.numerics.products import all_finite, dense, widened
from gradlint.numerics.verdict import TOLERATED
from gradlint.trace.op_io import OpRaised
from gradlint.trace.problem import draws_random_numbers

NO_INPUT = "no input requires grad"
NO_OUTPUT = "no output is differentiable"
SPARSE_INPUT = "an input is sparse"
NESTED_OUTPUT = "an output is nested"
SECOND_CALL_RAISED = "an identical second call raised"

#: Significand bits below which steps are too coarse to judge tangents: float16 and bfloat16.
_FEWEST_BITS_OF_TANGENTS = 24


# What the instrumented run tells.


def why_not_run(subject: Subject) -> str:
    """For experiments that need a forward and a backward that return."""
    error = subject.run.error
    if error is None:
        return ""
    refused = unsupported_dtype(subject)
    if refused:
        return f"not supported in {refused}"
    return f"{error.phase} raised: see {'GL003' if error.phase == 'forward' else 'GL004'}"


def why_no_forward(subject: Subject) -> str:
    """For experiments that need a forward that returns, whatever backward does."""
    error = subject.run.error
    return why_not_run(subject) if error is not None and error.phase == "forward" else ""


def why_not_finite(subject: Subject) -> str:
    """For experiments that need finite outputs too."""
    reason = why_not_run(subject)
    if reason:
        return reason
    for output in subject.run.outputs:
        if output.differentiable and not all_finite(output.value):
            return f"`{output.name}` is not finite"
    return ""


def why_not_differentiable(subject: Subject) -> str:
    """For experiments that need an input and an output with a gradient."""
    reason = why_not_run(subject)
    if reason:
        return reason
    if not subject.problem.inputs:
        return NO_INPUT
    return "" if any(output.differentiable for output in subject.run.outputs) else NO_OUTPUT


# Comparing the op with itself.


def why_not_comparable(subject: Subject) -> str:
    """For experiments that compare the op with an identical call of itself."""
    reason = why_not_differentiable(subject)
    if reason:
        return reason
    if any(output.value.is_nested for output in subject.run.outputs):
        return NESTED_OUTPUT
    if subject.problem.has_sparse_inputs:
        return SPARSE_INPUT
    return SECOND_CALL_RAISED if subject.once(make_baseline) is None else ""


def why_not_repeatable(subject: Subject) -> str:
    """For experiments that need identical calls to give the same results."""
    reason = why_not_comparable(subject)
    return reason or (NONDETERMINISTIC_NOTE if is_nondeterministic(subject) else "")


def why_layouts_not_comparable(subject: Subject) -> str:
    """For experiments on memory layouts, which compare finite gradients only."""
    reason = why_not_comparable(subject)
    if reason:
        return reason
    baseline = subject.once(make_baseline)
    assert baseline is not None
    return "" if baseline.comparable_inputs() else "no gradient is finite: see GL302"


def why_not_transformable(subject: Subject) -> str:
    """For experiments with ``torch.func``, ``torch.compile``, exporters and tensor-likes."""
    given = (*subject.sample.args, *subject.sample.kwargs.values())
    if any(map(holds_tensors, given)):
        return "PyTorch's transforms do not see the tensors in a dataclass"
    return why_not_finite(subject) or why_not_comparable(subject)


def why_not_on_cuda(subject: Subject, *, may_draw: bool = False) -> str:
    """For experiments on CUDA devices.

    Args:
        may_draw: whether forward may draw random numbers. They differ between devices, and between
            orders of calls.
    """
    if not torch.cuda.is_available():
        return "needs cuda: not available here"
    if not _is_on_cuda(subject):
        return "on cuda only: --device cpu,cuda"
    reason = why_not_transformable(subject)
    if not reason and not may_draw and _draws(subject):
        return "forward draws random numbers, which differ between devices"
    return reason


def why_not_guarded(subject: Subject) -> str:
    """For rules that read the guarded run."""
    reason = why_no_forward(subject)
    if reason:
        return reason
    if not subject.run.cotangents:
        return NO_OUTPUT
    raised = subject.run.error or subject.once(make_guarded).error
    return f"{raised.phase} raised: see GL004" if raised is not None else ""


# Measuring derivatives.


def why_not_measurable(subject: Subject) -> str:
    """For experiments that measure derivatives on a sample on which forward and backward ran."""
    reason = why_not_finite(subject)
    if reason and not _take_as_zero(subject):
        return f"{_nonfinite_input(subject) or reason}: nothing was judged"
    inputs, outputs = subject.problem.inputs, subject.run.outputs
    if inputs and all(item.value.numel() == 0 for item in inputs):
        return "every input is empty: nothing was judged; give inputs with elements"
    if all(item.value.numel() == 0 for item in outputs if item.differentiable):
        return "every output is empty: nothing was judged; give inputs with elements"
    return _why_not_reproducible(subject)


def why_not_differentiated_twice(subject: Subject) -> str:
    """For experiments with second derivatives."""
    if subject.run.error is not None:
        return why_not_run(subject)
    if not any(output.differentiable for output in subject.run.outputs):
        return NO_OUTPUT
    reason = why_not_measurable(subject) or subject.plan.too_small
    if reason:
        return reason
    gradients = subject.run.gradients or []
    finite = all(gradient is None or all_finite(gradient) for gradient in gradients)
    return "" if finite else "a gradient is not finite: see GL302"


def why_no_tangents(subject: Subject) -> str:
    """For experiments with forward mode."""
    reason = why_not_differentiable(subject)
    if reason:
        return reason
    tensors = [item.value for item in subject.problem.inputs]
    chosen = [item.value for item in subject.run.outputs if item.differentiable]
    if subject.problem.has_sparse_inputs or any(tensor.is_nested for tensor in chosen):
        return "tangents of sparse and nested tensors are not judged"
    bits = min(significand_bits(tensor.dtype) for tensor in (*tensors, *chosen))
    if bits < _FEWEST_BITS_OF_TANGENTS:
        return "jvp is judged in float32 and float64 only"
    return why_not_measurable(subject)


def why_not_resizable(subject: Subject) -> str:
    """For experiments at other sizes than the sample's."""
    reason = why_layouts_not_comparable(subject) or why_not_measurable(subject)
    if reason:
        return reason
    if not resizable(subject.sample):
        return "a tensor is sparse or nested"
    return "" if judged_inputs(subject) else "no gradient is right at the sample: see GL401"


# What a measurement could not say.


def what_was_not_moved(value: torch.Tensor) -> str:
    """Which part of an input was left as it was, in words; else ""."""
    if not value.numel():
        return "is empty: nothing to judge"
    still = int((~torch.isfinite(value)).sum())
    return f"{still} of {value.numel()} elements are not finite and were not moved" if still else ""


def why_inconclusive(subject: Subject) -> str:
    """What is known of why an input could not be judged."""
    problem = subject.problem
    if problem.changed_outputs:
        return how_outputs_changed(subject)
    if problem.raised:
        return (
            f"forward raises near the sample ({problem.raised[0]}); give inputs inside its domain"
        )
    return "too noisy or not smooth there"


def how_outputs_changed(subject: Subject) -> str:
    """How outputs changed in shape or dtype while the inputs were moved; "" where they did not."""
    changes = subject.problem.changed_outputs
    if not changes:
        return ""
    return (
        f"forward's outputs change with the values of the inputs ({changes[0]}); give inputs away "
        "from where they do"
    )


def _is_on_cuda(subject: Subject) -> bool:
    return any(value.device.type == "cuda" for value in subject.problem.values())


def _draws(subject: Subject) -> bool:
    try:
        return draws_random_numbers(subject.problem)
    except OpRaised:
        return True


def _take_as_zero(subject: Subject) -> bool:
    """Whether the only non-finite outputs are infinite whatever the inputs, as behind a mask.

    Those elements are taken as zero from then on, and the others can be judged.
    """
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


def _nonfinite_input(subject: Subject) -> str:
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


def _why_not_reproducible(subject: Subject) -> str:
    """How two calls with the same inputs and the same seeds gave different outputs."""
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
