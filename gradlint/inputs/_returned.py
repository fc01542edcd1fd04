"""Shapes and dtypes of the gradients that a backward returns, before the engine converts them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import torch

#: Nodes of the graph that are looked at (heuristic: an op has a handful of its own).
_MOST_NODES = 60


@contextmanager
def returned_shapes(
    outputs: Sequence[torch.Tensor],
    leaves: Sequence[torch.Tensor],
    real: set[int] | None = None,
    inside: set[tuple[int, ...]] | None = None,
) -> Iterator[dict[int, tuple[int, ...]]]:
    """Watch the Python Functions in the graph of ``outputs`` during the body.

    Args:
        outputs: of the op.
        leaves: what gradients are returned for.
        real: takes the positions of complex leaves for which a real gradient was returned.
        inside: takes the shapes of gradients for what was computed of leaves that have more axes
            than that has.

    Yields:
        Position in ``leaves`` → shape of the gradient returned for it, filled in where that is not
        the shape of the leaf: the engine sums it along the axes that forward broadcast.
    """
    found: dict[int, tuple[int, ...]] = {}
    positions = {id(leaf): position for position, leaf in enumerate(leaves)}
    changed: list[type] = []
    for node in _functions(outputs):
        if type(node) not in changed:
            changed.append(type(node))
            type(node).apply = _watched(type(node).apply, positions, found, real, inside)
    try:
        yield found
    finally:
        for kind in changed:
            # The inherited method shows again.
            del kind.apply  # type: ignore[attr-defined]


def _functions(outputs: Sequence[torch.Tensor]) -> Iterator[Any]:
    """Nodes of Python Functions near the outputs."""
    waiting = [tensor.grad_fn for tensor in outputs if tensor.grad_fn is not None]
    seen: set[Any] = set()
    while waiting and len(seen) < _MOST_NODES:
        node = waiting.pop()
        if node in seen:
            continue
        seen.add(node)
        if isinstance(node, torch.autograd.function.BackwardCFunction):
            yield node
        waiting += [parent for parent, _ in node.next_functions if parent is not None]


def _watched(
    apply: Callable[..., Any],
    positions: dict[int, int],
    found: dict[int, tuple[int, ...]],
    real: set[int] | None,
    inside: set[tuple[int, ...]] | None,
) -> Callable[..., Any]:
    """``apply`` of a node, the function that calls the user's backward: the hooks of the engine see
    gradients only after they were summed."""

    def applied(node: Any, *given: Any) -> Any:
        returned = apply(node, *given)
        parents = [(parent, place) for parent, place in node.next_functions if parent is not None]
        gradients = returned if isinstance(returned, tuple) else (returned,)
        needed = [
            gradient
            for gradient, needs in zip(gradients, node.needs_input_grad, strict=False)
            if needs
        ]
        for (parent, place), gradient in zip(parents, needed, strict=False):
            leaf = getattr(parent, "variable", None)
            position = positions.get(id(leaf))
            if leaf is None and inside is not None and _has_more_axes(gradient, parent, place):
                inside.add(tuple(gradient.shape))
            if leaf is None or position is None or not isinstance(gradient, torch.Tensor):
                continue
            if gradient.shape != leaf.shape:
                found[position] = tuple(gradient.shape)
            if real is not None and leaf.is_complex() and not gradient.is_complex():
                real.add(position)
        return returned

    return applied


def _has_more_axes(gradient: Any, parent: Any, place: int) -> bool:
    """Whether a gradient has more axes than the output ``place`` of the node that it is for."""
    known = getattr(parent, "_input_metadata", ())  # PyTorch has no public way to ask
    if not isinstance(gradient, torch.Tensor) or place >= len(known):
        return False
    return gradient.dim() > len(known[place].shape)
