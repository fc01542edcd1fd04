"""Recognise inputs that torch rejects, and those that only torch's own code can handle."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch.overrides import is_tensor_like

from gradlint.dropin._arguments import is_dense, tensors_in
from gradlint.dropin.failure import warn
from gradlint.trace.sparse import Pattern, is_sparse

#: If strides alone do not show whether elements overlap, they are compared one by one, up to this
#: many (heuristic: a few milliseconds).
COUNTED = 2**20

#: Dtypes that torch's default step and tolerances are made for.
DOUBLE = (torch.float64, torch.complex128)

#: Torch's own warning, since test suites expect it. Gradlint judges other dtypes too; only what it
#: leaves to torch's slow path is likely to fail.
NOT_DOUBLE = (
    "Input #{} requires gradient and is not a double precision floating point or complex. This "
    "check will likely fail if all the inputs are not of double precision floating point or "
    "complex. "
)

#: Dtypes that the measurements can handle.
KNOWN = {
    torch.float64,
    torch.float32,
    torch.float16,
    torch.bfloat16,
    torch.complex128,
    torch.complex64,
}


def check_inputs(args: tuple[Any, ...]) -> None:
    """Raise for inputs that torch rejects, and warn where torch warns.

    Raises:
        ValueError: no input requires grad.
        RuntimeError: an input that requires grad has elements that share memory.
    """
    any_grad = False
    for place, arg in enumerate(args):
        for tensor in tensors_in(arg):
            if not tensor.requires_grad:
                continue
            any_grad = True
            if tensor.dtype not in DOUBLE:
                warn(NOT_DOUBLE.format(place), UserWarning)
            content = Pattern(tensor).values if is_sparse(tensor) else tensor
            if is_dense(content) and overlaps(content):
                how = "a dimension with stride 0" if _stride_0(content) else "overlapping memory"
                raise RuntimeError(
                    f"The {place}th input has {how}. gradcheck only "
                    "supports inputs that are non-overlapping to be able to "
                    "compute the numerical gradients correctly. You should call "
                    ".contiguous on the input before passing it to gradcheck."
                )
    if not any_grad:
        raise ValueError(
            "gradcheck expects at least one input tensor to require gradient, "
            "but none of them have requires_grad=True."
        )


def overlaps(tensor: torch.Tensor) -> bool:
    """Whether two elements of ``tensor`` share a place in memory."""
    if _stride_0(tensor):
        return True
    axes = sorted((st, sz) for st, sz in zip(tensor.stride(), tensor.shape, strict=True) if sz > 1)
    reach = 0
    for stride, size in axes:
        if stride <= reach:
            break
        reach += stride * (size - 1)
    else:
        return False
    if not 0 < tensor.numel() <= COUNTED:
        return False
    offsets = torch.zeros((), dtype=torch.int64)
    for stride, size in axes:
        offsets = offsets.unsqueeze(-1) + stride * torch.arange(size)
    return offsets.unique().numel() < offsets.numel()


def _stride_0(tensor: torch.Tensor) -> bool:
    return any(st == 0 and sz > 1 for st, sz in zip(tensor.stride(), tensor.shape, strict=True))


def unrepresentable_outputs(outputs: Sequence[torch.Tensor]) -> str:
    """Why only torch's own code can check these outputs; "" if gradlint can."""
    for place, output in enumerate(outputs):
        if output.dtype not in KNOWN:
            return f"output {place} is {output.dtype}"
    return ""


def unrepresentable(args: tuple[Any, ...]) -> str:
    """Why only torch's own code can check a function of ``args``; "" if gradlint can."""
    for place, arg in enumerate(args):
        if is_tensor_like(arg) and not isinstance(arg, torch.Tensor):
            return f"input {place} is a {type(arg).__name__}, not a torch.Tensor"
        for tensor in tensors_in(arg):
            reason = _unknown_kind(tensor) if tensor.requires_grad else ""
            if reason:
                return f"input {place} {reason}"
    return ""


def _unknown_kind(tensor: torch.Tensor) -> str:
    reason = ""
    if type(tensor) not in (torch.Tensor, torch.nn.Parameter):
        reason = f"is a {type(tensor).__name__}, a subclass of torch.Tensor"
    elif not is_dense(tensor) and not is_sparse(tensor):
        reason = f"has the layout {'nested' if tensor.is_nested else str(tensor.layout)}"
    elif tensor.dtype not in KNOWN:
        reason = f"is {tensor.dtype}"
    elif tensor.device.type == "meta":
        reason = "is on the meta device"
    return reason
