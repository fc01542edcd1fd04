"""Batched gradients: ``vmap`` over backward, and over forward mode, against a loop."""

from __future__ import annotations

import warnings
from collections.abc import Sequence

import torch
from torch._vmap_internals import _vmap

from gradlint.dropin._compare import close
from gradlint.dropin._forward import tangents
from gradlint.dropin._function import Function
from gradlint.dropin._options import Options
from gradlint.dropin.failure import Failure
from gradlint.numerics.directions import cotangent
from gradlint.numerics.products import dense

#: Torch's own messages, since test suites match them.
WORDS = "gradcheck or gradgradcheck failed while testing batched gradient computation."
FORWARD_WORDS = "gradcheck failed while testing batched gradient computation with forward-mode AD."


def check_batched(function: Function, options: Options) -> list[Failure]:
    """Check that ``torch.autograd.grad(is_grads_batched=True)`` agrees with single calls."""
    generator = torch.Generator().manual_seed(options.seed + 13)
    for k, output in enumerate(function.outputs):
        vs = [cotangent(output.detach(), generator) for _ in range(2)]
        loop = [function.backward([output], [v]) for v in vs]
        expected = [
            torch.stack([_filled(grad, leaf) for grad in column])
            for column, leaf in zip(zip(*loop, strict=True), function.inputs, strict=True)
        ]
        try:
            with warnings.catch_warnings():
                warnings.filterwarnings("ignore", message="There is a performance drop")
                result = function.backward([output], [torch.stack(vs)], batched=True)
        except RuntimeError as error:
            return [_raised(error, WORDS)]
        for place, (grad, want) in enumerate(zip(result, expected, strict=True)):
            got = torch.zeros_like(want) if grad is None else dense(grad)
            if not close(got, want):
                return [_different(k, place, got, want, WORDS)]
    return []


def check_batched_forward(function: Function, options: Options) -> list[Failure]:
    """Check that ``vmap`` over forward mode agrees with single calls."""
    generator = torch.Generator().manual_seed(options.seed + 17)
    for place, value in enumerate(function.values):
        us = [cotangent(value, generator) for _ in range(2)]

        def push(u: torch.Tensor, place: int = place) -> tuple[torch.Tensor, ...]:
            found = tangents(function, function.values, {place: u})
            return tuple(
                torch.zeros_like(y.detach()) if ju is None else ju
                for y, ju in zip(function.outputs, found, strict=True)
            )

        expected = [torch.stack(column) for column in zip(*(push(u) for u in us), strict=True)]
        try:
            with warnings.catch_warnings():
                warnings.filterwarnings("ignore", message="There is a performance drop")
                # torch.func.vmap has no batching rule for dual tensors; torch's gradcheck uses this
                # internal one.
                result: Sequence[torch.Tensor] = _vmap(push)(torch.stack(us))
        except RuntimeError as error:
            return [_raised(error, FORWARD_WORDS)]
        for k, (got, want) in enumerate(zip(result, expected, strict=True)):
            if not close(got, want):
                return [_different(k, place, got, want, FORWARD_WORDS)]
    return []


def _filled(grad: torch.Tensor | None, leaf: torch.Tensor) -> torch.Tensor:
    if grad is None:
        return torch.zeros(leaf.shape, dtype=leaf.dtype, device=leaf.device)
    return dense(grad)


def _raised(error: RuntimeError, words: str) -> Failure:
    return Failure(
        f"While computing batched gradients, got: {error}\n\n{words}",
        ["backward or forward mode uses an operation that vmap cannot batch"],
        error,
    )


def _different(
    output: int, place: int, got: torch.Tensor, want: torch.Tensor, words: str
) -> Failure:
    error = torch.nan_to_num((got - want).abs(), nan=float("inf"))
    index = [int(k) for k in torch.unravel_index(error.argmax(), error.shape)]
    at = tuple(index)
    return Failure(
        f"For output {output} and input {place}:\n\n{words}",
        [
            f"worst at index {index} (batch first): batched {got[at].item():.6g}, "
            f"one by one {want[at].item():.6g}"
        ],
    )
