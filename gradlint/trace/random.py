"""Common random numbers: every call of a stochastic op draws the same ones."""

from __future__ import annotations

import random
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from itertools import islice
from types import CodeType, FunctionType, MethodType, ModuleType
from typing import Any

import torch

#: Objects looked through in search of generators: an op with its closures, attributes and the
#: globals that it names is far below (heuristic).
MOST_LOOKED_THROUGH = 4096

#: Packages whose objects hold no generator of the user's.
_NOT_USERS = frozenset({"torch", "numpy", "builtins", "gradlint", "math", "functools", "typing"})

#: Reads the state of a generator, and puts one back.
_Handle = tuple[Callable[[], Any], Callable[[Any], Any]]


@contextmanager
def common_random_numbers(seed: int) -> Iterator[None]:
    """Every generator (torch, ``random``, numpy where loaded) starts from ``seed`` in the body."""
    start_from(seed)
    yield


def start_from(seed: int) -> None:
    """Seed every generator: torch's, that of ``random``, and numpy's where it is loaded."""
    torch.default_generator.manual_seed(seed)
    if torch.cuda.is_initialized():
        torch.cuda.manual_seed_all(seed)
    random.seed(seed)
    numpy = sys.modules.get("numpy")
    if numpy is not None:
        numpy.random.seed(seed % 2**32)


def generator_states() -> list[Any]:
    """States of the process's own generators, to be compared with ``==``."""
    states: list[Any] = [torch.default_generator.get_state().tolist(), random.getstate()]
    numpy = sys.modules.get("numpy")
    if numpy is not None:
        states.append(numpy.random.get_state()[1].tolist())
        states.append(numpy.random.get_state()[2])
    if torch.cuda.is_initialized():
        states.append(torch.cuda.get_rng_state().tolist())
    return states


class OwnGenerators:
    """Generators that an op or its arguments hold, with the states they had when found."""

    def __init__(self, roots: Iterable[Any]) -> None:
        self._kept: list[tuple[Callable[[], Any], Callable[[Any], Any], Any]] = []
        for read, put in _handles(roots):
            with suppress(NotImplementedError):  # random.SystemRandom has no state
                self._kept.append((read, put, read()))

    def __bool__(self) -> bool:
        return bool(self._kept)

    def reset(self) -> None:
        """Put every generator back into the state it had when found."""
        for _, put, state in self._kept:
            put(state)

    def have_moved(self) -> bool:
        """Whether any has drawn numbers since :meth:`reset`."""
        return any(not _same(read(), state) for read, _, state in self._kept)


def _same(a: Any, b: Any) -> bool:
    if isinstance(a, torch.Tensor):
        return torch.equal(a, b)
    return str(a) == str(b)


def _handles(roots: Iterable[Any]) -> list[_Handle]:
    numpy = sys.modules.get("numpy")
    found: list[_Handle] = []
    for item in _reachable(roots):
        if isinstance(item, torch.Generator):
            found.append((item.get_state, item.set_state))
        elif isinstance(item, random.Random):
            found.append((item.getstate, item.setstate))
        elif numpy is not None and isinstance(item, numpy.random.RandomState):
            found.append((item.get_state, item.set_state))
        elif numpy is not None and isinstance(item, numpy.random.Generator):
            found.append(_numpy_handle(item.bit_generator))
    return found


def _numpy_handle(bits: Any) -> _Handle:
    return (lambda: bits.state), (lambda state: setattr(bits, "state", state))


def _reachable(roots: Iterable[Any]) -> Iterator[Any]:
    """``roots`` and what they hold: attributes, elements, closures, and globals named in code."""
    waiting = list(roots)
    seen: set[int] = set()
    while waiting and len(seen) < MOST_LOOKED_THROUGH:
        item = waiting.pop()
        if id(item) in seen or isinstance(item, (str, bytes, int, float, torch.Tensor, ModuleType)):
            continue
        seen.add(id(item))
        yield item
        with suppress(Exception):  # objects of the user's may refuse to be looked into
            waiting += _parts(item)


def _parts(item: Any) -> list[Any]:
    if isinstance(item, (list, tuple, set, frozenset)):
        return list(islice(item, MOST_LOOKED_THROUGH))
    if isinstance(item, dict):
        return list(islice(item.values(), MOST_LOOKED_THROUGH))
    if isinstance(item, FunctionType):
        return _parts_of_function(item)
    if isinstance(item, MethodType):
        return [item.__self__, item.__func__]
    if isinstance(item, (staticmethod, classmethod)):
        return [item.__func__]
    owner = item if isinstance(item, type) else type(item)
    if (owner.__module__ or "").partition(".")[0] in _NOT_USERS and not isinstance(
        item, torch.nn.Module
    ):
        return []
    held = list(getattr(item, "__dict__", {}).values())
    return held if isinstance(item, type) else [*held, owner]


def _parts_of_function(function: FunctionType) -> list[Any]:
    if (function.__module__ or "").partition(".")[0] in _NOT_USERS:
        return []
    parts: list[Any] = [*(function.__defaults__ or ()), *(function.__kwdefaults__ or {}).values()]
    for cell in function.__closure__ or ():
        try:
            parts.append(cell.cell_contents)
        except ValueError:  # an empty cell
            continue
    wrapped = getattr(function, "__wrapped__", None)
    names = _names(function.__code__)
    return [
        *parts,
        wrapped,
        *(function.__globals__[name] for name in names if name in function.__globals__),
    ]


def _names(code: CodeType) -> set[str]:
    names = set(code.co_names)
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            names |= _names(constant)
    return names
