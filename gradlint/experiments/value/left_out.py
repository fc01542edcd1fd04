"""Runs of an op in which something of the Functions inside of it is left out.

What is left of the op can be judged: where it is right, all that is wrong lies in what was left
out.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Any

import torch
from torch.autograd.function import _SingleLevelFunction

from gradlint.experiments.forward_under_autograd import forward_of, has_functions
from gradlint.experiments.value.rounding import RoundingOmitted
from gradlint.experiments.value.said_of_gradients import says_surrogate
from gradlint.ops.eager import eager
from gradlint.trace.applied import apply_replaced
from gradlint.trace.graph import only_leaf

#: Share by which arguments are moved, up and down, to see whether a Function is constant there
#: (heuristic: a step lies within so little of few values, and any slope shows).
MOVE = 2.0**-20

#: Multiples of it are all different, up to whole numbers (Weyl's sequence of the golden ratio).
GOLDEN = 0.5 * (math.sqrt(5.0) - 1.0)

#: Calls of Functions that are looked at.
MOST_CALLS = 4

_Call = tuple[type, Sequence[Any], dict[str, Any]]


class Omitted:
    """Leaves something of the Functions inside of an op out, while :meth:`around` lasts.

    Attributes:
        functions: of which something was left out.
        calls: the first calls of such Functions.
        in_part: whether only usual surrogates count, or what documentation tells of: what is left
            out may be wrong otherwise.
        usual_only: whether only usual surrogates count, whatever documentation says: it speaks of
            a part of what is left out.
        beside: inputs of the op that such Functions take beside, such as step sizes.
    """

    words = ""
    usual_only = False

    def __init__(self) -> None:
        self.functions: dict[type, None] = {}
        self.calls: list[_Call] = []
        self.in_part = False
        self.beside: list[torch.Tensor] = []

    @contextmanager
    def around(self) -> Iterator[None]:
        """While this lasts, it is left out."""
        with eager(), apply_replaced(self._apply_of(self)):
            yield

    @staticmethod
    def _apply_of(seen: Any) -> Callable[..., Any]:
        def apply(cls: type, *args: Any, **kwargs: Any) -> Any:
            returned = applied(cls, args, kwargs)
            if not _has_gradient(returned):
                return seen.without_graph(cls, args, returned)
            return seen.instead(cls, args, kwargs, returned)

        return apply

    def without_graph(self, function: type, args: Sequence[Any], returned: Any) -> Any:
        """What is returned where nothing requires grad, as at nearby values."""
        return returned

    def _note(self, function: type, args: Sequence[Any], kwargs: dict[str, Any]) -> None:
        self.functions[function] = None
        if len(self.calls) < MOST_CALLS and any(map(_requires_grad, args)):
            self.calls.append((function, args, kwargs))


class Stepping(Omitted):
    """Leaves out the gradients of Functions that are constant around their arguments."""

    words = "the gradient is that of a surrogate for the steps of"

    def instead(
        self, function: type, args: Sequence[Any], kwargs: dict[str, Any], returned: Any
    ) -> Any:
        """What is returned without a gradient for arguments around which it is constant."""
        moved = [k for k, value in enumerate(args) if _requires_grad(value)]
        if _is_constant(function, args, kwargs, returned, moved):
            flat = moved
        else:
            flat = [k for k in moved if _is_constant(function, args, kwargs, returned, [k])]
        if not flat:
            return returned
        self._note(function, args, kwargs)
        if len(flat) < len(moved):
            self.in_part = True
            beside = (only_leaf(args[k]) for k in moved if k not in flat)
            self.beside += [leaf for leaf in beside if leaf is not None]
            cut_off = [v.detach() if k in flat else v for k, v in enumerate(args)]
            return applied(function, cut_off, kwargs)
        parts = returned if isinstance(returned, tuple) else (returned,)
        cut = tuple(p.detach() if isinstance(p, torch.Tensor) else p for p in parts)
        return cut if isinstance(returned, tuple) else cut[0]


class PassingOn(Omitted):
    """Takes Functions as the identity that pass the gradient on unchanged and return something
    else than their argument, in the values as well."""

    words = "the gradient is right with the identity in the place of"

    def __init__(self) -> None:
        super().__init__()
        self.in_part = True
        self._places: dict[type, int] = {}

    def without_graph(self, function: type, args: Sequence[Any], returned: Any) -> Any:
        """The argument, where its gradient was passed on before."""
        return args[self._places[function]] * 1.0 if function in self._places else returned

    def instead(
        self, function: type, args: Sequence[Any], kwargs: dict[str, Any], returned: Any
    ) -> Any:
        """The argument, where its gradient is passed on."""
        moved = [k for k, value in enumerate(args) if _requires_grad(value)]
        if len(moved) != 1 or not isinstance(returned, torch.Tensor):
            return returned
        (place,) = moved
        x = args[place].detach().requires_grad_()
        if returned.shape != x.shape or torch.equal(returned.detach(), x):
            return returned
        given = [x if k == place else value for k, value in enumerate(args)]
        with torch.enable_grad(), suppress(Exception):
            v = torch.linspace(1.0, 2.0, x.numel()).reshape(x.shape).to(x)
            (found,) = torch.autograd.grad(applied(function, given, kwargs), x, v)
            if found is not None and torch.equal(found, v):
                self._note(function, args, kwargs)
                self._places[function] = place
                return args[place] * 1.0
        return returned


class Documented(Omitted):
    """Puts the derivative of forward in the place of gradients whose documentation tells of a
    surrogate, where forward consists of differentiable operations: one that scales what it rounds,
    or steps beside a smooth part, is neither constant nor without rounding what is meant."""

    words = "the gradient is right with the derivative of forward in the place of"
    usual_only = True

    def instead(
        self, function: type, args: Sequence[Any], kwargs: dict[str, Any], returned: Any
    ) -> Any:
        """What forward returns under autograd, where that is the same."""
        if kwargs or not says_surrogate(function):
            return returned
        found: Any = None
        with torch.enable_grad(), suppress(Exception):
            found = forward_of(function, args)
        if not isinstance(found, torch.Tensor) or not _same(found.detach(), returned):
            return returned
        if has_functions([found.grad_fn]):
            return returned
        self._note(function, args, kwargs)
        return found


class RoundingInside(Omitted):
    """Takes rounding in the forward of Functions as the identity, in the values as well."""

    words = "the gradient is right with rounding taken as the identity in"

    def __init__(self) -> None:
        super().__init__()
        self._inside: list[_Call] = []
        self._last: _Call | None = None

    @contextmanager
    def around(self) -> Iterator[None]:
        """While this lasts, Functions do not round."""
        with eager(), apply_replaced(self._apply_of(self)), RoundingOmitted(self._is_inside):
            yield

    def _is_inside(self) -> bool:
        if self._inside and self._inside[-1] is not self._last:
            self._last = self._inside[-1]
            self._note(*self._last)
        return bool(self._inside)

    @staticmethod
    def _apply_of(seen: RoundingInside) -> Callable[..., Any]:
        def apply(cls: type, *args: Any, **kwargs: Any) -> Any:
            seen._inside.append((cls, args, kwargs))
            try:
                return applied(cls, args, kwargs)
            finally:
                seen._inside.pop()

        return apply


def applied(function: Any, args: Sequence[Any], kwargs: dict[str, Any]) -> Any:
    """What ``function.apply`` returns where nothing stands in its place."""
    return super(_SingleLevelFunction, function).apply(*args, **kwargs)


def _has_gradient(returned: Any) -> bool:
    parts = returned if isinstance(returned, tuple) else (returned,)
    return any(isinstance(part, torch.Tensor) and part.requires_grad for part in parts)


def _is_constant(
    function: type,
    args: Sequence[Any],
    kwargs: dict[str, Any],
    returned: Any,
    places: Collection[int],
) -> bool:
    """Whether a Function returns the same where the arguments at some places are moved a little."""
    before = [
        p for p in (returned if isinstance(returned, tuple) else (returned,)) if p is not None
    ]
    for share in (MOVE, -MOVE):
        moved = [_moved(value, share if k in places else 0.0) for k, value in enumerate(args)]
        named = {name: _moved(value, share) for name, value in kwargs.items()}
        after: Any = None
        with torch.no_grad(), torch.random.fork_rng(devices=[]), suppress(Exception):
            after = applied(function, moved, named)
        found = [p for p in (after if isinstance(after, tuple) else (after,)) if p is not None]
        if len(found) != len(before) or not all(map(_same, before, found)):
            return False
    return True


def _requires_grad(value: Any) -> bool:
    return isinstance(value, torch.Tensor) and value.requires_grad


def _moved(value: Any, share: float) -> Any:
    if not isinstance(value, torch.Tensor):
        return value
    copy = value.detach().clone()
    return moved_apart(copy, share) if value.requires_grad and share else copy


def moved_apart(tensor: torch.Tensor, share: float) -> torch.Tensor:
    """``tensor`` with each element moved by another share of its size, one to two times ``share``:
    what is normalized does not change where all are moved alike, and takes no steps."""
    numbers = torch.arange(1, tensor.numel() + 1, dtype=torch.float64)
    apart = 1.0 + torch.remainder(numbers * GOLDEN, 1.0).reshape(tensor.shape)
    return tensor * (1.0 + share * apart).to(tensor)


def _same(one: Any, other: Any) -> bool:
    if isinstance(one, torch.Tensor) and isinstance(other, torch.Tensor):
        return torch.equal(one, other)
    return bool(type(one) is type(other) and one == other)
