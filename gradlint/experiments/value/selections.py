"""A selection that counts as the scores that it was made of.

Forward keeps the largest of some scores, or those above a threshold, as zeros and ones by which it
multiplies something: a sparse layer, a pruning mask, a gate. Scores have no derivative then, and
their usual surrogate is that of the zeros and ones themselves (Ramanujan et al., What's hidden in a
randomly weighted neural network?, CVPR 2020).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch.overrides import TorchFunctionMode
from torch.utils._pytree import tree_flatten, tree_unflatten

from gradlint.experiments.forward_under_autograd import without_backward
from gradlint.experiments.subject import Subject
from gradlint.trace.op_io import OpRaised

_PRODUCTS = frozenset(
    getattr(owner, name)
    for owner, names in (
        (torch, ("mul", "multiply")),
        (torch.Tensor, ("mul", "multiply", "__mul__", "__rmul__")),
    )
    for name in names
)


class SelectionsAsInputs(TorchFunctionMode):
    """Makes inputs of the tensors that meet something with a gradient, and have none.

    Args:
        like: of the shape of these tensors, and the dtype that truth values have as factors.

    Attributes:
        made: these inputs, in the order in which forward used them.
    """

    def __init__(self, like: torch.Tensor) -> None:
        super().__init__()
        self.made: list[torch.Tensor] = []
        self._shape, self._dtype = like.shape, like.dtype
        self._stands_for: dict[int, tuple[torch.Tensor, torch.Tensor]] = {}

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        leaves, spec = tree_flatten((args, kwargs or {}))
        tensors = [leaf for leaf in leaves if isinstance(leaf, torch.Tensor)]
        if len(tensors) > 1 and any(one.requires_grad for one in tensors):
            factors = func in _PRODUCTS
            leaves = [
                self._as_input(leaf) if self._is_selection(leaf, factors) else leaf
                for leaf in leaves
            ]
            args, kwargs = tree_unflatten(leaves, spec)
        return func(*args, **(kwargs or {}))

    def _is_selection(self, leaf: Any, factors: bool) -> bool:
        return (
            isinstance(leaf, torch.Tensor)
            and (leaf.is_floating_point() or (factors and leaf.dtype == torch.bool))
            and not leaf.requires_grad
            and leaf.shape == self._shape
        )

    def _as_input(self, leaf: torch.Tensor) -> torch.Tensor:
        if id(leaf) not in self._stands_for:
            dtype = self._dtype if leaf.dtype == torch.bool else leaf.dtype
            made = leaf.detach().to(dtype, copy=True).requires_grad_()
            self._stands_for[id(leaf)] = leaf, made  # kept, so that no number is given twice
            self.made.append(made)
        return self._stands_for[id(leaf)][1]


def gradients_of_selections(
    subject: Subject,
    position: int,
    values: Sequence[torch.Tensor],
    vs: Sequence[torch.Tensor],
) -> list[torch.Tensor]:
    """The gradients of what forward selected by input ``position``, and their sum.

    Args:
        values: of the inputs; forward is piecewise constant in that one.
        vs: cotangents of the outputs.
    """
    problem = without_backward(subject, subject.problem)
    if problem is None:
        return []
    mode = SelectionsAsInputs(values[position])
    problem.surroundings = lambda: mode
    try:
        _, outputs = problem.linearize(values)
    except OpRaised:
        return []
    ends = [item.value for item in outputs if item.differentiable]
    if not mode.made or len(ends) != len(vs):
        return []
    found = torch.autograd.grad(ends, mode.made, list(vs), allow_unused=True)
    parts = [part for part in found if part is not None]
    return [*parts, sum(parts[1:], parts[0])] if parts else []
