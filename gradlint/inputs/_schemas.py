"""What PyTorch's own functions take at each position, from their schemas."""

from __future__ import annotations

import inspect
from functools import lru_cache
from typing import Any

import torch

from gradlint.inputs._annotations import read_annotation
from gradlint.inputs._evidence import Evidence

_KIND_OF_TYPE = {
    "Tensor": "any",
    "number": "float",
    "Scalar": "float",
    "float": "float",
    "int": "int",
    "SymInt": "int",
    "bool": "bool",
    "str": "str",
    "List[int]": "shape",
    "List[SymInt]": "shape",
    "List[Tensor]": "tensors",
    "Optional[Tensor]": "any",
    "ScalarType": "dtype",
    "Device": "device",
}
#: Integer or boolean tensors, by the name that schemas give them.
_INTEGER_NAMES = frozenset({"index", "indices"})
_MASK_NAMES = frozenset({"mask", "condition"})


@lru_cache(maxsize=512)
def argument_kinds(name: str, key: int | str, method: bool) -> tuple[tuple[str, float], ...]:
    """Kinds that ``torch.<name>`` or ``Tensor.<name>`` takes at ``key``, with weights.

    Args:
        name: the function's name, e.g. "gather".
        key: position among the arguments written down, or the keyword.
        method: whether it is called as a method (the tensor is no written argument then).
    """
    shown = name[:-1] if name.endswith("_") and not name.endswith("__") else name
    packet = None
    for candidate in (name, shown):
        packet = getattr(torch.ops.aten, candidate, None)
        if packet is not None:
            break
    if packet is None:
        return _python_function(name, key) if not method else ()
    counts: dict[str, int] = {}
    total = 0
    for overload in packet.overloads():
        if overload.endswith("out") or "Dimname" in overload:
            continue
        argument = _pick(getattr(packet, overload)._schema.arguments, key, method)
        if argument is None:
            continue
        text = str(argument.type)
        if text.startswith("Optional[") and text != "Optional[Tensor]":
            text = text[9:-1]
        kind = _KIND_OF_TYPE.get(text)
        if kind == "any" and argument.name in _INTEGER_NAMES:
            kind = "index"
        elif kind == "any" and argument.name in _MASK_NAMES:
            kind = "mask"
        total += 1
        if kind:
            counts[kind] = counts.get(kind, 0) + 1
    # That a tensor must be of integers is worth more than any name.
    return tuple(
        (kind, (5.0 if kind in ("index", "mask") else 3.0) * count / total)
        for kind, count in counts.items()
    )


def _pick(arguments: Any, key: int | str, method: bool) -> Any:
    if isinstance(key, str):
        return next((argument for argument in arguments if argument.name == key), None)
    position = key + 1 if method else key
    return arguments[position] if position < len(arguments) else None


def _python_function(name: str, key: int | str) -> tuple[tuple[str, float], ...]:
    function = getattr(torch.nn.functional, name, None) or getattr(torch, name, None)
    try:
        parameters = list(inspect.signature(function).parameters.values())  # type: ignore[arg-type]
    except (TypeError, ValueError):
        return ()
    for index, parameter in enumerate(parameters):
        if key in (index, parameter.name):
            evidence = Evidence(parameter.name)
            read_annotation(evidence, parameter.annotation)
            return tuple((kind, weight / 2) for kind, weight in evidence.weights.items())
    return ()
