"""Inputs, outputs and exceptions of an op, by name."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import torch

from gradlint.numerics.products import dense


class OpRaised(Exception):
    """The op raised. ``phase`` is "forward" or "backward", ``error`` what it raised."""

    def __init__(self, phase: str, error: BaseException) -> None:
        super().__init__(f"{phase} raised {type(error).__name__}")
        self.phase = phase
        self.error = error


@dataclass(frozen=True)
class Input:
    """A differentiable input. ``position``: index into forward's positional arguments, or None
    for module parameters, keyword arguments and tensors inside containers. ``value``: of a sparse
    tensor, its stored values, in the order in which it stores them."""

    name: str
    value: torch.Tensor
    position: int | None = None


@dataclass(frozen=True)
class Handed:
    """A tensor that the op got in a call.

    Args:
        name: of the argument, parameter or buffer.
        tensor: the very tensor that the op got.
        value: the sample's own, which no op ever gets: what ``tensor`` was at the sample.
        position: of the differentiable input that it is, or None.
        buffer: whether it is a buffer, or a parameter without gradient, of a module.
    """

    name: str
    tensor: torch.Tensor
    value: torch.Tensor
    position: int | None = None
    buffer: bool = False


@dataclass(frozen=True)
class Output:
    """A tensor that forward returned: ``output``, ``output[1]`` or ``output['loss']``."""

    name: str
    value: torch.Tensor

    @property
    def differentiable(self) -> bool:
        """Whether it is floating or complex and connected to the graph."""
        return self.value.requires_grad and (
            self.value.is_floating_point() or self.value.is_complex()
        )

    @property
    def kind(self) -> str:
        """Dtype and shape, such as ``float64[3, 4]``; "" for nested tensors."""
        if self.value.is_nested:
            return ""
        return f"{str(self.value.dtype).removeprefix('torch.')}{list(self.value.shape)}"


def outputs_in(name: str, value: Any, others: list[str]) -> Iterator[Output]:
    """The tensors in what forward returned, dense.

    Args:
        name: of ``value``.
        value: a tensor, or tuples, lists and dicts of them.
        others: receives what is neither, in words.
    """
    if isinstance(value, torch.Tensor):
        yield Output(name, dense(value))
    elif isinstance(value, (list, tuple)):
        for index, part in enumerate(value):
            yield from outputs_in(f"{name}[{index}]", part, others)
    elif isinstance(value, dict):
        for key, part in value.items():
            yield from outputs_in(f"{name}[{key!r}]", part, others)
    elif value is not None:
        others.append(f"{name}: {type(value).__name__}")
