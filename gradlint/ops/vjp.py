"""Vector-Jacobian products, also of ops that only ``.backward()`` may differentiate.

A reentrant checkpoint runs a backward pass of its own, which reaches every leaf: it refuses
``torch.autograd.grad``, which promises to touch none but those named.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch

#: In the texts by which torch's reentrant checkpoint, and those made after it, refuse.
_BACKWARD_ONLY = "compatible with .grad()"


def refuses_grad(error: BaseException) -> bool:
    """Whether ``error`` says that ``.backward()`` must be called in place of ``.grad()``."""
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
    """``torch.autograd.grad`` with ``allow_unused``."""
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
    """The gradients that ``torch.autograd.backward`` leaves in ``.grad``, which is as before
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
