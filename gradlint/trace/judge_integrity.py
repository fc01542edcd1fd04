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
import operator
import sys
from collections.abc import Iterable, Iterator
from types import FunctionType, ModuleType
from typing import Any

import torch

#: What a class holds for calls, and can't be called itself.
_UNBOUND = (classmethod, property)

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


#: What a function does, apart from what it is.
_CODE = operator.attrgetter("__code__")
_DEFAULTS = operator.attrgetter("__defaults__")
_KEYWORDS = operator.attrgetter("__kwdefaults__")


class JudgeChanged(Exception):
    """The user's code changed what judges it.

    Args:
        names: of the functions and constants, in full.
    """

    def __init__(self, names: list[str]) -> None:
        super().__init__("the operator changed what judges it")
        self.names = names


class Judge:
    """Functions, methods and constants of ``modules``, and torch's engine, as they are now.

    All of it is compared at the end of every worker, and to look at an object copies the page of
    memory that it lies on into that worker. So no more is looked at than must be, and by iterators
    that run without Python's own code.
    """

    def __init__(self, modules: Iterable[ModuleType]) -> None:
        self._holders: list[_Held] = []
        for module in modules:
            name = module.__name__
            self._holders.append(_Held(name, module))
            self._holders += [
                _Held(f"{name}.{value.__name__}", value)
                for value in vars(module).values()
                if isinstance(value, type) and value.__module__ == name
            ]
        # Names that are not here yet would hide others, which are inherited.
        self._single = [
            (f"{_place(holder)}.{name}", vars(holder), name, vars(holder).get(name))
            for holder, name in (
                *_ENGINE,
                *((torch.Tensor, f"__{name}__") for name in _ARITHMETIC),
                *((builtins, name) for name in _DECIDING),
                *((math, name) for name in vars(math) if not name.startswith("_")),
            )
        ]
        self._kernels = _kernels()
        named = [(full, value) for full, _, _, value in self._single]
        named += [(f"{held.place}.{name}", value) for held in self._holders for name, value in held]
        # A function is imported under its name by many modules: the first one names it.
        values: dict[int, tuple[str, Any]] = {}
        for full, value in (*named[len(self._single) :], *named[: len(self._single)]):
            values.setdefault(id(value), (full, value))
        functions: dict[int, tuple[str, FunctionType]] = {}
        for full, value in values.values():
            for function in _functions(value):
                functions.setdefault(id(function), (full, function))
        self._full = [full for full, _ in functions.values()]
        self._functions = [function for _, function in functions.values()]
        self._codes = list(map(_CODE, self._functions))
        self._defaults = list(map(_DEFAULTS, self._functions))
        self._keywords = [dict(k) if k else k for k in map(_KEYWORDS, self._functions)]

    def changed(self) -> list[str]:
        """Names of what was replaced, removed, hidden or given other code or defaults since."""
        found = {full for full, names, name, value in self._single if names.get(name) is not value}
        for held in self._holders:
            found |= held.changed()
        for read, before in ((_CODE, self._codes), (_DEFAULTS, self._defaults)):
            if not all(map(operator.is_, map(read, self._functions), before)):
                found |= {
                    full
                    for full, function, value in zip(
                        self._full, self._functions, before, strict=True
                    )
                    if read(function) != value
                }
        # The dictionary may have been changed in its place.
        if list(map(_KEYWORDS, self._functions)) != self._keywords:
            found |= {
                full
                for full, function, value in zip(
                    self._full, self._functions, self._keywords, strict=True
                )
                if _KEYWORDS(function) != value
            }
        now = _kernels()
        found |= {name for name, kernels in self._kernels.items() if now.get(name) != kernels}
        return sorted(found)


class _Held:
    """What a module or class holds.

    Args:
        place: its full name.
        holder: the module or class.
    """

    def __init__(self, place: str, holder: Any) -> None:
        self.place = place
        self._holder = holder
        names = vars(holder)
        kept = {n: v for n, v in names.items() if callable(v) or isinstance(v, _UNBOUND)}
        self._names, self._values = list(kept), list(kept.values())
        self._all = frozenset(names)
        self._constants = {
            name: _copied(value)
            for name, value in names.items()
            if name.isupper() and _is_plain(value)
        }

    def __iter__(self) -> Iterator[tuple[str, Any]]:
        return zip(self._names, self._values, strict=True)

    def changed(self) -> set[str]:
        """As of :class:`Judge`, but for what functions do that are still there."""
        names = vars(self._holder)
        found: set[str] = set()
        if not all(map(operator.is_, map(names.get, self._names), self._values)):
            found.update(name for name, value in self if names.get(name) is not value)
        for name, value in self._constants.items():
            now = names.get(name)
            if now is not value and now != value:
                found.add(name)
        if not names.keys() <= self._all:
            found.update(n for n in names.keys() - self._all if _hides(self._holder, n))
        return {f"{self.place}.{name}" for name in found}


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


def _copied(value: Any) -> Any:
    """``value``, which is plain, or a copy of it if it can be changed in its place."""
    try:
        hash(value)
    except TypeError:
        return copy.deepcopy(value)
    return value


def _functions(value: Any) -> Iterator[FunctionType]:
    """The functions written in Python that run where ``value`` is called, got or set."""
    parts = (value.fget, value.fset, value.fdel) if isinstance(value, property) else (value,)
    for part in parts:
        function = getattr(part, "__func__", part)
        function = getattr(function, "__wrapped__", function)  # of functools.lru_cache and others
        if isinstance(function, FunctionType):
            yield function


def _is_plain(value: Any) -> bool:
    if isinstance(value, (tuple, list, set, frozenset)):
        return all(map(_is_plain, value))
    if isinstance(value, dict):
        return all(map(_is_plain, value)) and all(map(_is_plain, value.values()))
    return type(value) in _PLAIN
