"""What a module keeps in plain attributes, put back before every call.

Parameters and buffers are arguments of a call (``torch.func.functional_call``), so a call can't
change them. A counter, a cached table or a moving average that is no buffer lives in the module's
own attributes. If it stayed there, every call would compute another function, and a cache that a
tracer or ``vmap`` has filled would break the calls after it.

State is put back before a call and not after it, because a backward may read what its forward kept.
"""

from __future__ import annotations

import collections
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any
from weakref import WeakKeyDictionary

import torch

#: Attributes that ``torch.nn.Module`` itself keeps.
_OWN = frozenset(torch.nn.Module().__dict__) | {"_is_full_backward_hook"}

#: Containers whose elements are put back.
_CONTAINERS = (list, dict, set, collections.deque)

_known: WeakKeyDictionary[torch.nn.Module, ModuleState] = WeakKeyDictionary()


@dataclass
class _Tensor:
    """A tensor in an attribute, with a copy of its values and the version they belong to."""

    tensor: torch.Tensor
    values: torch.Tensor
    version: int


@dataclass
class _Attributes:
    """The attributes of one submodule: the very objects, and copies of what can change in place."""

    path: str
    held: dict[str, Any]
    kept: dict[str, Any]
    containers: dict[str, Any] = field(default_factory=dict)
    tensors: dict[str, _Tensor] = field(default_factory=dict)


class ModuleState:
    """The plain attributes of ``module`` and its submodules, as they are now."""

    def __init__(self, module: torch.nn.Module) -> None:
        self._submodules = [
            _attributes(path, part)
            for path, part in module.named_modules()
            if not isinstance(part, torch.jit.ScriptModule)
        ]

    def put_back(self) -> None:
        """Give every attribute the value that it had."""
        for part in self._submodules:
            for name in [name for name in part.held if _is_users(name) and name not in part.kept]:
                del part.held[name]
            for name, value in part.kept.items():
                if part.held.get(name, self) is not value:
                    part.held[name] = value
            for name, elements in part.containers.items():
                _refill(part.kept[name], elements)
            for item in part.tensors.values():
                _restore(item)

    def changed(self) -> Iterator[str]:
        """Names of the attributes that no longer have the values that they had."""
        for part in self._submodules:
            users = {name for name in part.held if _is_users(name)}
            for name in sorted(users | set(part.kept)):
                if _differs(part, name):
                    yield f"{part.path}.{name}" if part.path else name


def module_state(module: torch.nn.Module) -> ModuleState:
    """The attributes of ``module`` as they were when this was first asked for."""
    if module not in _known:
        _known[module] = ModuleState(module)
    return _known[module]


def _is_users(name: str) -> bool:
    return name not in _OWN


def _attributes(path: str, module: torch.nn.Module) -> _Attributes:
    found = _Attributes(path, module.__dict__, {})
    for name, value in module.__dict__.items():
        if not _is_users(name):
            continue
        found.kept[name] = value
        if type(value) in _CONTAINERS:
            found.containers[name] = value.copy()
        elif isinstance(value, torch.Tensor) and value.layout == torch.strided:
            detached = value.detach()
            found.tensors[name] = _Tensor(value, detached.clone(), value._version)
    return found


def _refill(container: Any, elements: Any) -> None:
    if _same_elements(container, elements):
        return
    container.clear()
    (container.extend if hasattr(container, "extend") else container.update)(elements)


def _same_elements(container: Any, elements: Any) -> bool:
    pairs = zip(_flat(container), _flat(elements), strict=False)
    return len(container) == len(elements) and all(a is b for a, b in pairs)


def _flat(container: Any) -> list[Any]:
    if isinstance(container, dict):
        return [part for pair in container.items() for part in pair]
    return list(container)


def _restore(item: _Tensor) -> None:
    if item.tensor._version == item.version:
        return
    with torch.no_grad():
        item.tensor.detach().copy_(item.values)
    item.version = item.tensor._version


def _differs(part: _Attributes, name: str) -> bool:
    if name not in part.held or name not in part.kept or part.held[name] is not part.kept[name]:
        return True
    item = part.tensors.get(name)
    if item is not None:
        return item.tensor._version != item.version
    elements = part.containers.get(name)
    return elements is not None and not _same_elements(part.kept[name], elements)
