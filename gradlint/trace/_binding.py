"""Find the differentiable inputs among the arguments of a call, and call with other values."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, TypeVar

import torch

from gradlint.model.op import Op
from gradlint.model.sample import Sample, map_tensors
from gradlint.trace.op_io import Handed, Input
from gradlint.trace.sparse import Pattern, is_sparse

Result = TypeVar("Result")

#: Returns the same values in another memory layout, or None to leave the tensor as it is.
Relay = Callable[[torch.Tensor], "torch.Tensor | None"]


class _Holding(torch.nn.Module):
    """Calls a function while the module that it holds has other parameters and buffers."""

    def __init__(self, held: torch.nn.Module) -> None:
        super().__init__()
        self.held = held

    def forward(self, function: Callable[[], Any]) -> Any:
        """What ``function`` returns."""
        return function()


class Binding:
    """The arguments of ``sample`` and the state of the op's module, with slots for the inputs.

    Attributes:
        inputs: tensors of the sample that require grad, then the module's parameters that do.
        parameters: the names of those parameters.
        patterns: position of a sparse input → the places of its stored elements.
        invoke: calls the op with positional arguments, keyword arguments and its module's state.
    """

    def __init__(self, op: Op, sample: Sample) -> None:
        self._op = op
        self._sample = sample
        self.inputs: list[Input] = []
        self.parameters: list[str] = []
        self.patterns: dict[int, Pattern] = {}
        self._slots: dict[int, int] = {}
        self._names: dict[int, str] = {}
        self._buffers: dict[str, torch.Tensor] = {}
        self._given: dict[str, torch.Tensor] = {}
        self.invoke = _plainly(op)
        self._collect()

    def call(
        self,
        passed: Sequence[torch.Tensor],
        constants: Relay | None = None,
        handed: list[Handed] | None = None,
    ) -> Any:
        """What the op returns for ``passed`` in the slots and copies of everything else.

        Args:
            passed: one tensor per input.
            constants: lays the other tensors out differently in memory.
            handed: receives every tensor that the op gets.
        """
        seen: list[Handed] = []

        def copy(tensor: torch.Tensor) -> torch.Tensor:
            found = constants(tensor.detach()) if constants else None
            return tensor.detach().clone() if found is None else found

        def place(tensor: torch.Tensor) -> torch.Tensor:
            slot = self._slots.get(id(tensor))
            given = copy(tensor) if slot is None else passed[slot]
            if handed is not None:
                name = self._names.get(id(tensor), "")
                seen.append(Handed(name, given, tensor.detach(), slot))
            return given

        args, kwargs = map_tensors((self._sample.args, self._sample.kwargs), place)
        module = self._op.module
        state: dict[str, torch.Tensor] = {}
        if module is not None:
            for slot, name in enumerate(self.parameters, len(passed) - len(self.parameters)):
                state[name] = passed[slot]
                seen.append(Handed(name, passed[slot], self.inputs[slot].value, slot))
            for name, value in self._buffers.items():
                state[name] = copy(value)
                seen.append(Handed(name, state[name], value, buffer=True))
        if handed is not None:
            handed[:] = seen
        self._given = state
        return self.invoke(args, kwargs, state)

    def during_backward(self, function: Callable[[], Result]) -> Result:
        """What ``function`` returns, while the op's module has the state that the last call gave
        it: a backward may read the module itself, as reversible layers do."""
        return self._holding(self._given, function)

    def while_at(self, passed: Sequence[torch.Tensor], function: Callable[[], Result]) -> Result:
        """What ``function`` returns, while the op's module has its parameters among ``passed``: one
        tensor per input. What calls the op and its backward by itself needs this."""
        own = passed[len(passed) - len(self.parameters) :]
        buffers = {name: value.detach().clone() for name, value in self._buffers.items()}
        return self._holding({**dict(zip(self.parameters, own, strict=True)), **buffers}, function)

    def _holding(self, given: Mapping[str, torch.Tensor], function: Callable[[], Result]) -> Result:
        module = self._op.module
        if module is None or not given or isinstance(module, torch.jit.ScriptModule):
            return function()
        state = {f"held.{name}": value for name, value in given.items()}
        found: Result = torch.func.functional_call(_Holding(module), state, (function,))
        return found

    def as_passed(self, position: int, value: torch.Tensor) -> torch.Tensor:
        """The tensor that the op gets for input ``position`` at ``value``."""
        pattern = self.patterns.get(position)
        return value if pattern is None else pattern.filled(value)

    def picked(self, position: int, gradient: torch.Tensor | None) -> torch.Tensor | None:
        """The gradient of input ``position``, from that of the tensor that the op got. Positions
        beyond the inputs are allowed; their gradients are returned as they are."""
        pattern = self.patterns.get(position)
        return gradient if pattern is None or gradient is None else pattern.picked(gradient)

    def state(self) -> dict[str, torch.Tensor]:
        """The parameters and buffers that the op's module gets, by name."""
        first = len(self.inputs) - len(self.parameters)
        values = [item.value for item in self.inputs[first:]]
        return {**dict(zip(self.parameters, values, strict=True)), **self._buffers}

    def index_of(self, position: int, index: Sequence[int]) -> list[int]:
        """The index, in the tensor that the op gets, of element ``index`` of input ``position``."""
        pattern = self.patterns.get(position)
        return list(index) if pattern is None else pattern.index_of(index)

    def put(self, values: Mapping[int, torch.Tensor]) -> None:
        """Replace the values of some inputs, given by position."""
        self.inputs = [
            replace(item, value=values.get(position, item.value))
            for position, item in enumerate(self.inputs)
        ]

    def take_values(self, other: Binding) -> None:
        """Take the values of ``other``, a binding of the same op, converted to the dtypes here."""
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
            self._names.setdefault(id(tensor), name)
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
        floats = [tensor for _, tensor in named if tensor.is_floating_point()]
        floats += [tensor for _, tensor in named if tensor.is_complex()]
        like = floats[0] if floats else None
        for name, parameter in module.named_parameters():
            value = _like(parameter.detach(), like)
            if parameter.requires_grad:
                self.parameters.append(name)
                self.inputs.append(Input(name, value))
            else:
                self._buffers[name] = value
        for name, buffer in module.named_buffers():
            self._buffers[name] = _like(buffer.detach(), like)


def _plainly(op: Op) -> Callable[[tuple[Any, ...], dict[str, Any], dict[str, torch.Tensor]], Any]:
    # Closures over plain names, so that a compiler that traces them has to read nothing else.
    call, module = op.call, op.module
    if module is None:
        return lambda args, kwargs, state: call(*args, **kwargs)
    return lambda args, kwargs, state: torch.func.functional_call(module, state, args, kwargs)


def _like(tensor: torch.Tensor, like: torch.Tensor | None) -> torch.Tensor:
    """``tensor`` on the device and with the precision of ``like``, real or complex as it is."""
    if like is None:
        return tensor
    real, wanted = like.dtype.to_real(), tensor.dtype
    if tensor.is_floating_point():
        wanted = real
    elif tensor.is_complex():
        wanted = torch.complex128 if real == torch.float64 else torch.complex64
    return tensor.to(device=like.device, dtype=wanted)
