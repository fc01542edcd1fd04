"""One call of an op as plain data, so that another process can repeat it.

What passes is confirmed by ``gradlint.running.confirming``, with the op in a process in which
nothing of gradlint is loaded. Only data travel there: numbers, texts, dtypes, containers of them,
and tensors as bytes.
"""

from __future__ import annotations

import json
from typing import Any

import torch

from gradlint.experiments.subject import Subject
from gradlint.inputs.stand_ins import Attributes
from gradlint.model.events import Confirmable
from gradlint.model.op import Op
from gradlint.ops.bare import DTYPES, packed
from gradlint.trace.module_state import module_state

#: Bytes of tensors that are sent, at most (heuristic: half of what the channel takes in one event).
MOST_BYTES = 1 << 24

_PLAIN = (type(None), bool, int, float, str)


class _NotPlain(Exception):
    """Something that can't travel; says what."""


def confirmable(subject: Subject | None) -> Confirmable:
    """The call of ``subject`` at its sample as data, or why there is none."""
    if subject is None:
        return Confirmable("", "the op ran on no sample", "", [])
    label = subject.sample.label
    try:
        reason = _reason(subject)
        if reason:
            return Confirmable(label, reason, "", [])
        tensors, request = _request(subject)
        if sum(tensor.numel() * tensor.element_size() for tensor in tensors) > MOST_BYTES:
            raise _NotPlain(f"its tensors take more than {MOST_BYTES >> 20} MiB")
        described, parts = packed(tensors)
        return Confirmable(label, "", json.dumps({**request, "arrays": described}), parts)
    except _NotPlain as error:
        return Confirmable(label, str(error), "", [])


def _reason(subject: Subject) -> str:
    """Why the op of ``subject`` is not run by itself, if that is so."""
    op, problem = subject.op, subject.problem
    confined = subject.first_order_is_known and any(subject.first_order_map.project or ())
    reasons = {
        "it is a formula, and no code of the user's": op.kind == "formula",
        "it was built from sources for this run": bool(op.sources),
        "it declares a surrogate gradient": bool(op.intent.surrogate),
        "no input requires grad": not problem.inputs,
        "it works with `.backward()` only": problem.only_backward,
        "its backward leaves gradients in `.grad`": bool(problem.fills_grad),
        "some of its outputs are infinite whatever the inputs": bool(problem.zeroed),
        "it changes the process that it runs in": problem.preserve_state,
        "its inputs are confined to a part of their space": confined,
    }
    return next((reason for reason, holds in reasons.items() if holds), "")


class _Data:
    """Values as data, and the tensors among them."""

    def __init__(self) -> None:
        self.tensors: list[torch.Tensor] = []
        self.places: dict[int, int] = {}

    def place(self, tensor: torch.Tensor) -> int:
        """The position of ``tensor`` among :attr:`tensors`."""
        if type(tensor) not in (torch.Tensor, torch.nn.Parameter):
            raise _NotPlain(f"an argument is a {type(tensor).__name__}")
        if tensor.layout is not torch.strided or tensor.device.type != "cpu":
            raise _NotPlain(f"a tensor is {tensor.layout} on {tensor.device}")
        if tensor.dtype not in DTYPES.values():
            raise _NotPlain(f"a tensor has dtype {tensor.dtype}")
        if id(tensor) not in self.places:
            self.places[id(tensor)] = len(self.tensors)
            self.tensors.append(tensor)
        return self.places[id(tensor)]

    def of(self, item: Any) -> list[Any]:
        """A pair of a kind and what is needed to make it."""
        kind = type(item)
        if isinstance(item, torch.Tensor):
            return ["tensor", self.place(item)]
        if kind in (tuple, list, torch.Size):
            return ["list" if kind is list else "tuple", [self.of(part) for part in item]]
        if kind is dict and all(type(key) in _PLAIN for key in item):
            return ["dict", [[key, self.of(part)] for key, part in item.items()]]
        if isinstance(item, Attributes):
            return ["object", [[name, self.of(part)] for name, part in vars(item).items()]]
        return _leaf(item)


def _leaf(item: Any) -> list[Any]:
    kind = type(item)
    if kind in _PLAIN:
        return ["plain", item]
    if kind is torch.dtype:
        return ["dtype", str(item).removeprefix("torch.")]
    if kind is torch.device:
        return ["device", str(item)]
    if kind is complex:
        return ["complex", [item.real, item.imag]]
    raise _NotPlain(f"an argument is a {kind.__name__}")


def _request(subject: Subject) -> tuple[list[torch.Tensor], dict[str, Any]]:
    """The tensors of the call, and everything else as ``gradlint.ops.bare`` reads it."""
    op, problem, data = subject.op, subject.problem, _Data()
    args, kwargs = data.of(subject.sample.args), data.of(subject.sample.kwargs)
    given = [value for _, value in subject.arguments() if isinstance(value, torch.Tensor)]
    inputs = [data.place(tensor) for tensor in given if tensor.requires_grad]
    inputs = list(dict.fromkeys(inputs))
    state = {name: data.place(value) for name, value in problem.binding.state().items()}
    inputs += [state[name] for name in problem.binding.parameters]
    request = {
        "args": args,
        "kwargs": kwargs,
        "inputs": inputs,
        "names": [item.name for item in problem.inputs],
        "state": state,
        "in_place": problem.in_place,
        "stateful": _stateful(op),
        "module": op.module is not None,
        "constructor": data.of(op.constructor),
    }
    return data.tensors, request


def _stateful(op: Op) -> bool:
    return op.module is not None and any(True for _ in module_state(op.module).changed())
