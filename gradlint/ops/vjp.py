"""Vector-Jacobian products, also for ops that can only be differentiated by ``.backward()``.

A reentrant checkpoint runs a backward pass of its own, which reaches every leaf. So it raises under
``torch.autograd.grad``, which guarantees to touch only the leaves that are passed to it. Other ops
run one without raising, as reversible layers do: the gradients of the weights inside are then left
in ``.grad``, and ``torch.autograd.grad`` returns None for them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

import torch

#: Part of the error texts of torch's reentrant checkpoint and of others modelled on it.
_BACKWARD_ONLY = "compatible with .grad()"


def refuses_grad(error: BaseException) -> bool:
    """Whether ``error`` says that ``.backward()`` must be called instead of ``.grad()``."""
    try:
        return isinstance(error, RuntimeError) and _BACKWARD_ONLY in str(error)
    except Exception:
        return False


def vjp(
    outputs: Sequence[torch.Tensor],
    leaves: Sequence[torch.Tensor],
    cotangents: Sequence[torch.Tensor],
    *,
    create_graph: bool = False,
    retain_graph: bool | None = None,
) -> list[torch.Tensor | None]:
    """``torch.autograd.grad`` with ``allow_unused``: one gradient per leaf, or None."""
    found = torch.autograd.grad(
        list(outputs),
        list(leaves),
        list(cotangents),
        allow_unused=True,
        create_graph=create_graph,
        retain_graph=retain_graph,
    )
    return list(found)


def accumulated(
    outputs: Sequence[torch.Tensor],
    leaves: Sequence[torch.Tensor],
    cotangents: Sequence[torch.Tensor],
    *,
    retain_graph: bool | None = None,
) -> list[torch.Tensor | None]:
    """The gradients that ``torch.autograd.backward`` accumulates in ``.grad``, which is restored
    afterwards."""
    for leaf in leaves:
        if leaf.requires_grad and not leaf.is_leaf:
            leaf.retain_grad()
    kept = [leaf.grad for leaf in leaves]
    for leaf in leaves:
        leaf.grad = None
    try:
        torch.autograd.backward(list(outputs), list(cotangents), retain_graph=retain_graph)
        return [leaf.grad for leaf in leaves]
    finally:
        for leaf, grad in zip(leaves, kept, strict=True):
            leaf.grad = grad


@contextmanager
def arrivals(leaves: Sequence[torch.Tensor]) -> Iterator[list[torch.Tensor | None]]:
    """For each of ``leaves``, the sum of the gradients that autograd's engine brings there in the
    body, be it in a backward pass that an op makes inside of its own."""
    came: list[torch.Tensor | None] = [None] * len(leaves)

    def adding(position: int) -> Callable[[torch.Tensor | None], None]:
        def add(gradient: torch.Tensor | None) -> None:  # None where a Function returned that
            if gradient is None:
                return
            so_far = came[position]
            # A copy: what arrives may be the very tensor in `.grad`, to which it is added.
            own = gradient.detach().clone()
            came[position] = own if so_far is None else so_far + own

        return add

    handles = [
        leaf.register_hook(adding(position))
        for position, leaf in enumerate(leaves)
        if leaf.requires_grad
    ]
    try:
        yield came
    finally:
        for handle in handles:
            handle.remove()


def taken(leaves: Sequence[torch.Tensor]) -> list[torch.Tensor | None]:
    """What an op left in the ``.grad`` of ``leaves``, where nothing was; it is removed."""
    left = [leaf.grad if leaf.is_leaf else None for leaf in leaves]
    for leaf, grad in zip(leaves, left, strict=True):
        if grad is not None:
            leaf.grad = None
    return left


def settled(
    returned: Sequence[torch.Tensor | None],
    left: Sequence[torch.Tensor | None],
    came: Sequence[torch.Tensor | None],
) -> tuple[list[torch.Tensor | None], set[int]]:
    """The gradients of leaves of which some were left in ``.grad``, and the positions of leaves
    where an op left one by itself, beside what autograd brought.

    Args:
        returned: what ``torch.autograd.grad`` returned; None everywhere after ``.backward()``.
        left: what is in ``.grad``.
        came: as of :func:`arrivals`.
    """
    gradients, positions = list(returned), set()
    for position, (own, held, brought) in enumerate(zip(returned, left, came, strict=True)):
        if held is None:
            continue
        total = held if own is None else own + held
        gradients[position] = total if brought is None else brought
        if brought is not None and not _alike(total, brought):
            positions.add(position)
    return gradients, positions


def _alike(one: torch.Tensor, other: torch.Tensor) -> bool:
    if one.shape != other.shape or one.layout != torch.strided or other.layout != torch.strided:
        return True
    return torch.allclose(one, other.to(one.dtype), equal_nan=True)
