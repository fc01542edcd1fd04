"""Which tensors of a call are the differentiable inputs, and how a call is made with others."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import torch

from gradlint.inputs import map_tensors
from gradlint.trace._sparse import Pattern, is_sparse
from gradlint.trace._terms import Input

if TYPE_CHECKING:
    from gradlint.inputs import Sample
    from gradlint.targets import Op

#: The same values in another layout, or None for none.
Relay = Callable[[torch.Tensor], "torch.Tensor | None"]


class Binding:
    """The arguments of ``sample`` and the state of the op's module, with slots for inputs.

    Attributes:
        inputs: tensors of the sample that require grad, then the module's parameters that do.
        parameters: names of the latter in the module.
        patterns: position of an input that is sparse → where it stores elements.
    """

    def __init__(self, op: Op, sample: Sample) -> None:
        self._op = op
        self._sample = sample
        self.inputs: list[Input] = []
        self.parameters: list[str] = []
        self.patterns: dict[int, Pattern] = {}
        self._slots: dict[int, int] = {}
        self._buffers: dict[str, torch.Tensor] = {}
        self._collect()

    def call(self, passed: Sequence[torch.Tensor], constants: Relay | None = None) -> Any:
        """What the op returns for ``passed`` in the slots and copies of everything else, which
        ``constants``, where it is given, lays out otherwise."""

        def copy(tensor: torch.Tensor) -> torch.Tensor:
            found = constants(tensor.detach()) if constants else None
            return tensor.detach().clone() if found is None else found

        def place(tensor: torch.Tensor) -> torch.Tensor:
            slot = self._slots.get(id(tensor))
            return copy(tensor) if slot is None else passed[slot]

        args, kwargs = map_tensors((self._sample.args, self._sample.kwargs), place)
        if self._op.module is None:
            return self._op.call(*args, **kwargs)
        first = len(passed) - len(self.parameters)
        state = dict(zip(self.parameters, passed[first:], strict=True))
        state.update({name: copy(value) for name, value in self._buffers.items()})
        return torch.func.functional_call(self._op.module, state, args, kwargs)

    def as_passed(self, position: int, value: torch.Tensor) -> torch.Tensor:
        """What the op gets for input ``position`` at ``value``."""
        pattern = self.patterns.get(position)
        return value if pattern is None else pattern.filled(value)

    def picked(self, position: int, gradient: torch.Tensor | None) -> torch.Tensor | None:
        """A gradient towards what the op got, as one towards input ``position``. Gradients of
        other things may follow those of the inputs: they are left alone."""
        pattern = self.patterns.get(position)
        return gradient if pattern is None or gradient is None else pattern.picked(gradient)

    def index_of(self, position: int, index: Sequence[int]) -> list[int]:
        """Where in what the op gets the element ``index`` of input ``position`` is."""
        pattern = self.patterns.get(position)
        return list(index) if pattern is None else pattern.index_of(index)

    def take_values(self, other: Binding) -> None:
        """Go to the values of ``other``, a binding of the same op, in the dtypes here."""
        self.inputs = [
            replace(mine, value=theirs.value.to(mine.value.dtype))
            for mine, theirs in zip(self.inputs, other.inputs, strict=True)
        ]
        self._buffers = {
            name: value.to(self._buffers[name].dtype) for name, value in other._buffers.items()
        }

    def _collect(self) -> None:
        positions = {
            id(value): index
            for index, value in enumerate(self._sample.args)
            if isinstance(value, torch.Tensor)
        }
        named = self._sample.named_tensors(self._op.signature)
        for name, tensor in named:
            if id(tensor) in self._slots or not tensor.requires_grad:
                continue
            value = tensor.detach()
            if is_sparse(value):
                pattern = self.patterns[len(self.inputs)] = Pattern(value)
                value = pattern.values
            self._slots[id(tensor)] = len(self.inputs)
            self.inputs.append(Input(name, value, positions.get(id(tensor))))
        module = self._op.module
        if module is None:
            return
        like = next((tensor for _, tensor in named if tensor.is_floating_point()), None)
        for name, parameter in module.named_parameters():
            value = _like(parameter.detach(), like)
            if parameter.requires_grad:
                self.parameters.append(name)
                self.inputs.append(Input(name, value))
            else:
                self._buffers[name] = value
        for name, buffer in module.named_buffers():
            self._buffers[name] = _like(buffer.detach(), like)


def _like(tensor: torch.Tensor, like: torch.Tensor | None) -> torch.Tensor:
    if like is None:
        return tensor
    wanted = like.dtype if tensor.is_floating_point() else tensor.dtype
    return tensor.to(device=like.device, dtype=wanted)
