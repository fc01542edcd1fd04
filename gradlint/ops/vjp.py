"""Vector-Jacobian products, also for ops that can only be differentiated by ``.backward()``.

A reentrant checkpoint runs a backward pass of its own, which reaches every leaf. So it raises under
``torch.autograd.grad``, which guarantees to touch only the leaves that are passed to it.
"""

from __future__ import annotations

from collections.abc import Sequence

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
