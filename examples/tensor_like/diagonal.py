"""A tensor-like that is no Tensor: c·I, kept as one number. Right, and as it goes wrong.

`gradlint overrides examples/tensor_like/diagonal.py:ScalarDiagonal` audits it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

Handlers = dict[Callable[..., Any], Callable[..., Any]]


class ScalarDiagonal:
    """The n×n matrix c·I. Functions without a handler refuse it."""

    HANDLERS: Handlers = {}  # noqa: RUF012

    def __init__(self, n: int, value: float) -> None:
        self.n = n
        self.value = torch.as_tensor(value)

    def to_dense(self) -> Tensor:
        """The matrix with all its zeros."""
        return self.value * torch.eye(self.n)

    @classmethod
    def __torch_function__(
        cls,
        func: Callable[..., Any],
        types: Any,
        args: tuple[Any, ...] = (),
        kwargs: dict[str, Any] | None = None,
    ) -> Any:
        if func not in cls.HANDLERS:
            return NotImplemented
        return cls.HANDLERS[func](*args, **(kwargs or {}))


class WrongScalarDiagonal(ScalarDiagonal):
    """The same with handlers that are wrong, one way each."""

    HANDLERS: Handlers = {}  # noqa: RUF012


def implements(
    table: Handlers, function: Callable[..., Any]
) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Registers a handler of ``function`` in ``table``."""

    def register(handler: Callable[..., Any]) -> Callable[..., Any]:
        table[function] = handler
        return handler

    return register


@implements(ScalarDiagonal.HANDLERS, torch.trace)
def trace(input: ScalarDiagonal) -> Tensor:
    """n·c."""
    return input.n * input.value


@implements(ScalarDiagonal.HANDLERS, torch.mean)
def mean(input: ScalarDiagonal, dim: int | None = None) -> Tensor:
    """c/n, over all elements or along either axis."""
    found = input.value / input.n
    return found if dim is None else found.expand(input.n)


@implements(ScalarDiagonal.HANDLERS, torch.matmul)
def matmul(input: Any, other: Any, *, out: None = None) -> Any:
    """Products with one another stay diagonal; with matrices they scale."""
    if isinstance(input, ScalarDiagonal) and isinstance(other, ScalarDiagonal):
        return type(input)(input.n, input.value * other.value)
    return input.value * other if isinstance(input, ScalarDiagonal) else input * other.value


@implements(ScalarDiagonal.HANDLERS, torch.inverse)
def inverse(input: ScalarDiagonal, *, out: None = None) -> ScalarDiagonal:
    """I/c."""
    return type(input)(input.n, 1 / input.value)


@implements(WrongScalarDiagonal.HANDLERS, torch.mean)
def mean_as_number(input: ScalarDiagonal) -> float:
    """Leaves the graph: a number has no gradient; and takes no `dim`."""
    return float(input.value) / input.n


@implements(WrongScalarDiagonal.HANDLERS, torch.matmul)
def matmul_elementwise(other: Any, input: Any, *, out: None = None) -> Any:
    """Has its arguments the other way round."""
    return type(other)(other.n, input.value * other.value)


@implements(WrongScalarDiagonal.HANDLERS, torch.add)
def add_everywhere(input: ScalarDiagonal, other: Any, *, out: None = None) -> Tensor:
    """Adds c to every element, not only on the diagonal."""
    return input.value + other.to_dense()
