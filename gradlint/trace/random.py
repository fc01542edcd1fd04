"""Random generators: their states, and common random numbers for a stochastic op.

If every call starts from the same state of every generator, the op is one fixed function of its
inputs, and differences between calls are due to the inputs alone.
"""

from __future__ import annotations

import random
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from itertools import islice
from types import CodeType, FunctionType, MethodType, ModuleType
from typing import Any

import torch

#: Objects that are searched for generators at most (heuristic: an op with its closures, attributes
#: and the globals that it names has far fewer).
MOST_LOOKED_THROUGH = 4096

#: Packages whose objects hold none of the user's generators.
_NOT_USERS = frozenset({"torch", "numpy", "builtins", "gradlint", "math", "functools", "typing"})

#: Two functions: one reads the state of a generator, the other restores it.
_Handle = tuple[Callable[[], Any], Callable[[Any], Any]]


@contextmanager
def common_random_numbers(seed: int) -> Iterator[None]:
    """In the body, every generator of the process starts from ``seed``."""
    start_from(seed)
    yield


def seed_torch(seed: int) -> None:
    """Seed torch's generators. What ``torch.manual_seed`` does besides, for devices that are not in
    use, formats the stack of calls three times: it takes longer than a call of a small op."""
    torch.default_generator.manual_seed(seed)
    if torch.cuda.is_initialized():
        torch.cuda.manual_seed_all(seed)


def start_from(seed: int) -> None:
    """Seed every generator of the process: torch's, that of ``random``, numpy's if it is loaded."""
    seed_torch(seed)
    random.seed(seed)
    numpy = sys.modules.get("numpy")
    if numpy is not None:
        numpy.random.seed(seed % 2**32)


@dataclass(frozen=True, eq=False)
class GeneratorStates:
    """States of the process's own generators; None for one that was not read.

    Args:
        cpu: of torch on the CPU; cuda: of torch on every CUDA device.
        python: of ``random``; numpy: of numpy's global generator.
    """

    cpu: torch.Tensor | None
    cuda: list[torch.Tensor] | None
    python: Any
    numpy: Any

    @property
    def outside_torch(self) -> GeneratorStates:
        """The states of ``random`` and numpy alone."""
        return replace(self, cpu=None, cuda=None)

    def restore(self, *, only_torch: bool = False) -> None:
        """Put every generator back into its state here, or only torch's, which is much faster."""
        if self.cpu is not None:
            torch.default_generator.set_state(self.cpu)
        if self.cuda is not None:
            torch.cuda.set_rng_state_all(self.cuda)
        if only_torch:
            return
        random.setstate(self.python)
        numpy = sys.modules.get("numpy")
        if numpy is not None and self.numpy is not None:
            numpy.random.set_state(self.numpy)

    def __eq__(self, other: object) -> bool:
        """Whether all generators that were read are in the same states."""
        if not isinstance(other, GeneratorStates) or self.python != other.python:
            return False  # the state of ``random`` is hundreds of plain numbers, compared at once
        return all(_same(getattr(self, n), getattr(other, n)) for n in ("cpu", "cuda", "numpy"))

    __hash__ = None  # type: ignore[assignment]  # states hold tensors


def generator_states(*, cuda: bool | None = None) -> GeneratorStates:
    """The states of the process's own generators now.

    Args:
        cuda: whether to read those of CUDA devices; by default if CUDA is in use.
    """
    numpy = sys.modules.get("numpy")
    use_cuda = torch.cuda.is_initialized() if cuda is None else cuda
    return GeneratorStates(
        torch.default_generator.get_state(),
        torch.cuda.get_rng_state_all() if use_cuda else None,
        random.getstate(),
        numpy.random.get_state(legacy=False) if numpy is not None else None,
    )


class OwnGenerators:
    """Generators that an op or its arguments hold, with the states they had when found.

    Args:
        roots: the objects to search.
    """

    def __init__(self, roots: Iterable[Any]) -> None:
        self._kept: list[tuple[Callable[[], Any], Callable[[Any], Any], Any]] = []
        for read, put in _handles(roots):
            with suppress(NotImplementedError):  # random.SystemRandom has no state
                self._kept.append((read, put, read()))

    def __bool__(self) -> bool:
        """Whether any generator was found."""
        return bool(self._kept)

    def reset(self) -> None:
        """Put every generator back into the state it had when found."""
        for _, put, state in self._kept:
            put(state)

    def have_moved(self) -> bool:
        """Whether any has drawn numbers since :meth:`reset`."""
        return any(not _same(read(), state) for read, _, state in self._kept)


def _same(a: Any, b: Any) -> bool:
    """Whether two states are equal: tensors, arrays and numbers, nested in lists and dicts."""
    if isinstance(a, torch.Tensor):
        return isinstance(b, torch.Tensor) and torch.equal(a, b)
    if isinstance(a, (list, tuple)) and isinstance(b, (list, tuple)):
        return len(a) == len(b) and all(_same(x, y) for x, y in zip(a, b, strict=True))
    if isinstance(a, dict) and isinstance(b, dict):
        return a.keys() == b.keys() and all(_same(a[key], b[key]) for key in a)
    same = a == b
    return bool(same.all() if hasattr(same, "all") else same)


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
        with suppress(Exception):  # the user's objects may refuse access to attributes
            waiting += _parts(item)


def _parts(item: Any) -> list[Any]:
    """What an object holds, in which generators may be found."""
    if isinstance(item, (list, tuple, set, frozenset, dict)):
        held = item.values() if isinstance(item, dict) else item
        return list(islice(held, MOST_LOOKED_THROUGH))
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
    attributes = list(getattr(item, "__dict__", {}).values())
    return attributes if isinstance(item, type) else [*attributes, owner]


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
