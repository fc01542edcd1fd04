"""Inputs, outputs and exceptions of an op, by name."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import torch

from gradlint.numerics.products import dense


class OpRaised(Exception):
    """The op raised.

    Args:
        phase: "forward", "backward" or "reference".
        error: the exception that it raised.
    """

    def __init__(self, phase: str, error: BaseException) -> None:
        super().__init__(f"{phase} raised {type(error).__name__}")
        self.phase = phase
        self.error = error


@dataclass(frozen=True)
class Input:
    """A differentiable input.

    Args:
        name: name of the argument or parameter.
        value: its value, or the stored values of a sparse tensor, in the order of storage.
        position: index into forward's positional arguments; None for module parameters, keyword
            arguments and tensors inside containers.
    """

    name: str
    value: torch.Tensor
    position: int | None = None


@dataclass(frozen=True)
class Handed:
    """A tensor that the op got in a call.

    Args:
        name: name of the argument, parameter or buffer.
        tensor: the tensor itself that the op got.
        value: the sample's own tensor, of which ``tensor`` is a copy.
        position: position of the differentiable input that it is, or None.
        buffer: whether it is a module's buffer, or a parameter without gradient.
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
    """The tensors among what forward returned, as dense ones.

    Args:
        name: name of ``value``.
        value: a tensor, or nested tuples, lists and dicts of tensors.
        others: receives a description of everything that is not a tensor.
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
