"""Tensor-likes to feed an op: a Tensor subclass, and a wrapper with ``__torch_function__``."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar

import torch
from torch.utils import _pytree

from gradlint.model.sample import map_tensors
from gradlint.trace.problem import Problem

#: Operators of Python that look up their method on the type, not on the object.
_OPERATORS = (
    *("abs", "invert", "neg", "pos", "getitem", "eq", "ne", "ge", "gt", "le", "lt"),
    *("add", "sub", "mul", "truediv", "floordiv", "mod", "pow", "matmul", "and", "or", "xor"),
    *("radd", "rsub", "rmul", "rtruediv", "rfloordiv", "rpow", "rmatmul", "rand", "ror"),
)

#: Conversions to plain Python values.
_CONVERSIONS = ["bool", "complex", "float", "index", "int", "len"]


class Subclass(torch.Tensor):
    """A Tensor that differs from a plain one only in its type."""


class Wrapper:
    """Holds a tensor without being one: everything goes through ``__torch_function__``.

    Args:
        tensor: what is held.
    """

    #: Functions that PyTorch, or an op, asked the wrapper to call.
    seen: ClassVar[list[Any]] = []

    def __init__(self, tensor: torch.Tensor) -> None:
        self.tensor = tensor

    @classmethod
    def __torch_function__(
        cls, func: Callable[..., Any], types: Any, args: Any = (), kwargs: Any = None
    ) -> Any:
        Wrapper.seen.append(func)
        given = _unwrapped((args, kwargs or {}))
        return _wrapped(func(*given[0], **given[1]))

    def __getattr__(self, name: str) -> Any:
        if name == "tensor" or (name.startswith("__") and name.endswith("__")):
            raise AttributeError(name)
        found = getattr(self.tensor, name)
        if not callable(found):
            return _wrapped(found)
        return lambda *args, **kwargs: _wrapped(found(*_unwrapped(args), **_unwrapped(kwargs)))


def _operator(name: str) -> Callable[..., Any]:
    def apply(self: Wrapper, *args: Any) -> Any:
        return _wrapped(getattr(self.tensor, name)(*_unwrapped(args)))

    return apply


def _conversion(name: str) -> Callable[..., Any]:
    return lambda self: getattr(self.tensor, name)()


for _name in _OPERATORS:
    setattr(Wrapper, f"__{_name}__", _operator(f"__{_name}__"))
for _name in _CONVERSIONS:
    setattr(Wrapper, f"__{_name}__", _conversion(f"__{_name}__"))
# Defining __eq__ takes it away; tensors hash by identity.
Wrapper.__hash__ = object.__hash__  # type: ignore[method-assign]


def _unwrapped(value: Any) -> Any:
    return _pytree.tree_map(lambda item: item.tensor if isinstance(item, Wrapper) else item, value)


def _wrapped(value: Any) -> Any:
    return _pytree.tree_map(
        lambda item: Wrapper(item) if isinstance(item, torch.Tensor) else item, value
    )


class TensorLikeCalls:
    """``problem`` with its differentiable arguments handed over as tensor-likes.

    Attributes:
        problem: the op, whose outputs come back as plain tensors.
        is_wrapper: whether they are not Tensors.
        kept: whether some output of the last call was a tensor-like.
        dispatched: whether the op asked the tensor-like to call the op for it.
    """

    def __init__(self, problem: Problem, like: type) -> None:
        self._like = like
        self._call = problem.op.call
        self.is_wrapper = like is Wrapper
        self.kept = self.dispatched = False
        self.problem = problem.through(self._transform)

    def _transform(self, invoke: Callable[..., Any]) -> Callable[..., Any]:
        def call(args: Any, kwargs: Any, state: Any) -> Any:
            Wrapper.seen.clear()
            given = map_tensors((args, kwargs), self._as_like)
            returned = invoke(*given, state)
            leaves = _pytree.tree_leaves(returned)
            self.kept = any(isinstance(leaf, self._like) for leaf in leaves)
            self.dispatched = any(func is self._call for func in Wrapper.seen)
            return _pytree.tree_map(_plain, returned)

        return call

    def _as_like(self, tensor: torch.Tensor) -> Any:
        if not tensor.requires_grad:
            return tensor
        copy = tensor.clone()  # ops that work in place refuse leaves
        return copy.as_subclass(Subclass) if self._like is Subclass else Wrapper(copy)


def _plain(value: Any) -> Any:
    if isinstance(value, Wrapper):
        return value.tensor
    return value.as_subclass(torch.Tensor) if isinstance(value, Subclass) else value
