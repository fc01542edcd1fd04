"""Is what judges still what it was before the user's code was imported?

An operator runs in the process that judges it, and may replace functions of gradlint there, their
code, or the numbers that they compare with. A verdict that comes after this is none. An operator
that puts everything back before anyone looks is not found here (gradlint/docs/threat-model.md).
"""

from __future__ import annotations

import builtins
import copy
import functools
import math
import sys
from collections.abc import Iterable
from types import FunctionType, ModuleType
from typing import Any

import torch

#: What constants that are compared consist of.
_PLAIN = (bool, int, float, complex, str, bytes, type(None))

#: What gradlint asks torch for gradients by, and computes with. Libraries wrap other functions of
#: torch on import, and rightly.
_ENGINE = (
    *((torch.autograd, name) for name in ("grad", "backward", "_engine_run_backward")),
    (torch.autograd.graph, "_engine_run_backward"),
    (torch.autograd.Function, "apply"),
    (torch.Tensor, "backward"),
    (torch.Tensor, "requires_grad_"),
    *((torch.enable_grad, name) for name in ("__enter__", "__exit__")),
    *((torch.no_grad, name) for name in ("__enter__", "__exit__")),
)
_ARITHMETIC = (
    *("abs", "add", "eq", "floordiv", "ge", "gt", "le", "lt", "matmul", "mul", "ne", "neg", "pow"),
    *("radd", "rmul", "rpow", "rsub", "rtruediv", "sub", "truediv"),
)

#: Functions of Python's own by which gradlint decides. Other ones are replaced on import by
#: libraries too, and rightly: ``print``, ``open``, ``__import__``.
_DECIDING = (
    *("abs", "all", "any", "bool", "enumerate", "filter", "float", "int", "isinstance", "len"),
    *("map", "max", "min", "pow", "range", "round", "sorted", "sum", "zip"),
)

#: Operators of torch's dispatcher with which gradlint computes, and the keys under which they do it
#: for dense tensors. A kernel that a library registers takes the place of torch's in the whole
#: process.
_KERNELS = (
    *("abs", "all", "any", "dot", "ge.Tensor", "gt.Tensor", "isfinite", "le.Tensor", "lt.Tensor"),
    *("add.Tensor", "div.Tensor", "eq.Tensor", "mul.Tensor", "ne.Tensor", "neg", "sub.Tensor"),
    *("_local_scalar_dense", "_to_copy", "clone", "copy_", "max", "mm", "sum", "sum.dim_IntList"),
)
_KEYS = ("CPU", "CUDA", "AutogradCPU", "AutogradCUDA", "ADInplaceOrView")


class JudgeChanged(Exception):
    """The user's code changed what judges it.

    Args:
        names: of the functions and constants, in full.
    """

    def __init__(self, names: list[str]) -> None:
        super().__init__("the operator changed what judges it")
        self.names = names


class Judge:
    """Functions, methods and constants of ``modules``, and torch's engine, as they are now."""

    def __init__(self, modules: Iterable[ModuleType]) -> None:
        holders: list[tuple[str, Any]] = []
        for module in modules:
            name = module.__name__
            holders.append((name, module))
            holders += [
                (f"{name}.{value.__name__}", value)
                for value in vars(module).values()
                if isinstance(value, type) and value.__module__ == name
            ]
        members = [
            (place, holder, name, value)
            for place, holder in holders
            for name, value in vars(holder).items()
        ]
        self._callables = [
            (f"{place}.{name}", vars(holder), name, value)
            for place, holder, name, value in members
            if isinstance(value, (staticmethod, classmethod, property)) or callable(value)
        ]
        # Names that are not here yet would hide others, which are inherited.
        self._callables += [
            (f"{_place(holder)}.{name}", vars(holder), name, vars(holder).get(name))
            for holder, name in (
                *_ENGINE,
                *((torch.Tensor, f"__{name}__") for name in _ARITHMETIC),
                *((builtins, name) for name in _DECIDING),
                *((math, name) for name in vars(math) if not name.startswith("_")),
            )
        ]
        self._names = [(place, holder, set(vars(holder))) for place, holder in holders]
        self._kernels = _kernels()
        # A function is imported under its name by many modules.
        states = {id(value): (full, value) for full, _, _, value in reversed(self._callables)}
        self._states = [
            (full, value, state) for full, value in states.values() if (state := _state(value))
        ]
        self._constants = [
            (f"{place}.{name}", vars(holder), name, copy.deepcopy(value))
            for place, holder, name, value in members
            if name.isupper() and _is_plain(value)
        ]

    def changed(self) -> list[str]:
        """Names of what was replaced, removed, hidden or given other code or defaults since."""
        found = {
            full for full, names, name, value in self._callables if names.get(name) is not value
        }
        found |= {full for full, value, state in self._states if _state(value) != state}
        found |= {full for full, names, name, value in self._constants if names.get(name) != value}
        found |= {
            f"{place}.{name}"
            for place, holder, before in self._names
            for name in vars(holder).keys() - before
            if _hides(holder, name)
        }
        now = _kernels()
        found |= {name for name, kernels in self._kernels.items() if now.get(name) != kernels}
        return sorted(found)


@functools.lru_cache(maxsize=1)
def judge_at_the_start() -> Judge:
    """What judges, as it was at the first call: all modules of gradlint that were loaded then."""
    names = [name for name in sys.modules if name.partition(".")[0] == "gradlint"]
    return Judge(sys.modules[name] for name in names)


def _hides(holder: Any, name: str) -> bool:
    """Whether a name that was added to a module or class stands for another one there now: a
    builtin, or what the class inherits. A module of that name was imported below a package."""
    if isinstance(holder, type):
        return name in ("__getattr__", *dir(super(holder, holder)))
    return hasattr(builtins, name) and type(vars(holder)[name]) is not ModuleType


def _kernels() -> dict[str, list[str]]:
    """Operator → what is registered for it, and from where, under each of :data:`_KEYS`."""
    table: Any = getattr(torch._C, "_dispatch_dump_table", None)
    if table is None:
        return {}
    return {
        f"aten::{name}": [
            line for line in table(f"aten::{name}").splitlines() if line.partition(":")[0] in _KEYS
        ]
        for name in _KERNELS
    }


def _place(holder: Any) -> str:
    module = getattr(holder, "__module__", "")
    return ".".join(filter(None, (module, holder.__name__)))


def _state(value: Any) -> tuple[Any, ...]:
    """What a function does, apart from what it is."""
    if isinstance(value, property):
        return tuple(_state(part) for part in (value.fget, value.fset, value.fdel))
    function = getattr(value, "__func__", value)
    function = getattr(function, "__wrapped__", function)  # of functools.lru_cache and others
    if not isinstance(function, FunctionType):
        return ()
    return (
        function.__code__,
        function.__defaults__,
        tuple(sorted((function.__kwdefaults__ or {}).items(), key=lambda item: item[0])),
    )


def _is_plain(value: Any) -> bool:
    if isinstance(value, (tuple, list, set, frozenset)):
        return all(map(_is_plain, value))
    if isinstance(value, dict):
        return all(map(_is_plain, value)) and all(map(_is_plain, value.values()))
    return type(value) in _PLAIN
