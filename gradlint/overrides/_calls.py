"""Compares the results of torch's functions on instances of a class and on plain tensors."""

from __future__ import annotations

import inspect
import itertools
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache, partial
from typing import Any

import torch

from gradlint.overrides._signatures import required
from gradlint.trace.random import seed_torch

#: Methods by which a tensor-like object returns the tensor that it represents.
DENSE = ("to_dense", "dense", "to_tensor", "tensor", "full")

#: Second arguments that may be an instance too.
_OTHERS = ("other", "mat2", "tensor2", "vec", "vec2")

#: Combinations of guesses that are tried.
MOST_GUESSES = 64

#: Instances that each function is called on, drawn at random. The first is 3×3 where the class
#: takes a tensor, so that most functions of matrices run; the others have these shapes if it takes
#: them. One value or one shape alone may hide that a handler ignores a sign or mixes up axes.
SHAPES = ((3, 3), (3, 3), (2, 4))

#: Share of the largest element that rounding may change.
CLOSE = 1e-4


class _NoTensor(Exception):
    """A function does not return a tensor for plain ones."""


@dataclass(frozen=True)
class Trial:
    """One function called on an instance; ``kind`` is "" where nothing was wrong."""

    func: Callable[..., Any]
    kind: str = ""
    severity: str = ""
    message: str = ""


def instance_factories(cls: Any, seed: int) -> tuple[list[Callable[[], Any]], str]:
    """What makes instances of ``cls``, each its own and always the same one; or nothing, and why.

    Args:
        seed: of the random values that constructors are given. ``sample_inputs`` of the class
            draws its own, from torch's generator.
    """
    given = getattr(cls, "sample_inputs", None)
    if callable(given):
        try:
            if isinstance(_first(given()), cls):
                return [partial(_drawn, given, seed + k) for k in range(len(SHAPES))], ""
        except Exception as error:
            return [], f"sample_inputs raises {type(error).__name__}"
    found: list[Callable[[], Any]] = []
    for k, shape in enumerate(SHAPES):
        for arguments in itertools.islice(_guesses(cls, seed + k, shape), MOST_GUESSES):
            try:
                if dense(cls(*_copied(arguments))) is not None:
                    found.append(partial(_made, cls, arguments))
                    break
            except Exception:
                continue
    if found:
        return found, ""
    return [], (
        "no instance could be made: add a static method sample_inputs that returns one, and a "
        f"method that gives its tensor ({', '.join(DENSE)})"
    )


def _drawn(given: Callable[[], Any], seed: int) -> Any:
    seed_torch(seed)
    return _first(given())


def _made(cls: Any, arguments: tuple[Any, ...]) -> Any:
    return cls(*_copied(arguments))


def _copied(arguments: tuple[Any, ...]) -> tuple[Any, ...]:
    """So that a function that writes to an instance leaves the next one alone."""
    return tuple(a.clone() if isinstance(a, torch.Tensor) else a for a in arguments)


def dense(value: Any) -> torch.Tensor | None:
    """The plain tensor that ``value`` represents; None where it offers none."""
    if type(value) is torch.Tensor:
        return value
    for name in DENSE:
        method = getattr(type(value), name, None)
        if callable(method) and method is not getattr(torch.Tensor, name, None):
            found = method(value)
            return found if isinstance(found, torch.Tensor) else None
    if isinstance(value, torch.Tensor):
        with torch._C.DisableTorchFunctionSubclass():
            return value.detach().clone().as_subclass(torch.Tensor)
    return None


def tried(cls: type, makers: Sequence[Callable[[], Any]], func: Callable[..., Any]) -> Trial | None:
    """Call ``func`` on random instances: the first trial at which something was wrong, else one at
    which nothing was; None where it can't be called with instances alone, raises, or does not
    return a tensor for plain ones either."""
    needed = required(_testing().get(func))
    if needed is None or not needed or len(needed) > 2 or (needed[1:] and needed[1] not in _OTHERS):
        return None
    found = None
    for place, make in enumerate(makers):
        # The second operand is another instance, since two equal ones can't show a swap; the same
        # one where shapes do not fit.
        other = makers[(place + 1) % len(makers)]
        try:
            trial = _tried_on(cls, [make, other][: len(needed)], func)
            if trial is None and needed[1:]:
                trial = _tried_on(cls, [make, make], func)
        except _NoTensor:  # nor will it return one for other instances
            return found
        if trial is not None and trial.kind:
            return trial
        found = found or trial
    return found


def _tried_on(
    cls: type, makers: Sequence[Callable[[], Any]], func: Callable[..., Any]
) -> Trial | None:
    try:
        plain = [t for t in (dense(make()) for make in makers) if t is not None]
        expected = _seeded(func, [t.clone() for t in plain], 0)
    except Exception:
        return None
    if not isinstance(expected, torch.Tensor):
        raise _NoTensor
    try:
        again = _seeded(func, [t.clone() for t in plain], 1)
        got = _seeded(func, [make() for make in makers], 0)
    except Exception:
        return None  # an exception is not a silent mistake
    return _judged(cls, func, got, expected, again)


def _seeded(func: Callable[..., Any], arguments: list[Any], seed: int) -> Any:
    seed_torch(seed)
    return func(*arguments)


def _judged(
    cls: type, func: Callable[..., Any], got: Any, expected: torch.Tensor, again: torch.Tensor
) -> Trial:
    if not isinstance(got, (cls, torch.Tensor)):
        text = f"returns {type(got).__name__} where torch returns a Tensor"
        return Trial(func, "wrong-type", "warning", text)
    if issubclass(cls, torch.Tensor) and not isinstance(got, cls):
        return Trial(
            func, "type-lost", "warning", f"returns a plain Tensor instead of {cls.__name__}"
        )
    value = dense(got)
    # Uninitialised memory and random numbers can't be compared.
    unset = any(word in getattr(func, "__name__", "") for word in ("empty", "resize"))
    if value is None or unset or not _same(expected, again):
        return Trial(func)
    if value.shape != expected.shape:
        shapes = f"{list(value.shape)} instead of {list(expected.shape)}"
        return Trial(func, "other-shape", "error", f"returns the wrong shape: {shapes}")
    if not _same(value, expected):
        text = "returns different values than torch does for the tensor that it represents"
        return Trial(func, "other-values", "error", text)
    return Trial(func)


def _same(a: torch.Tensor, b: torch.Tensor) -> bool:
    if a.shape != b.shape:
        return False
    a, b = (t.detach().to(torch.complex128 if t.is_complex() else torch.float64) for t in (a, b))
    gap = torch.nan_to_num((a - b).abs())
    return not gap.numel() or bool(gap.max() <= CLOSE * max(1.0, float(b.abs().nan_to_num().max())))


@cache
def _testing() -> dict[Callable[..., Any], Callable[..., Any]]:
    return torch.overrides.get_testing_overrides()


def _first(found: Any) -> Any:
    return found[0] if isinstance(found, (tuple, list)) else found


def _guesses(cls: Any, seed: int, shape: tuple[int, ...]) -> Any:
    """Arguments of the constructor, with tensors of ``shape`` and numbers drawn from ``seed``."""
    generator = torch.Generator().manual_seed(seed)
    tensor = torch.randn(shape, generator=generator)
    number = 2.0 * float(torch.randn((), generator=generator))
    if issubclass(cls, torch.Tensor) and cls.__new__ is torch.Tensor.__new__:
        yield (tensor,)
    try:
        parameters = list(inspect.signature(cls).parameters.values())
    except (TypeError, ValueError):
        yield (tensor,)
        return
    needed = [
        p
        for p in parameters
        if p.default is p.empty and p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)
    ]
    size = shape[0]
    known = {int: (size,), float: (number,), str: ("m",), bool: (True,)}
    names = {"int": int, "float": float, "str": str, "bool": bool}
    choices = [
        known.get(names.get(p.annotation, p.annotation), (tensor, size, number, "m"))
        for p in needed
    ]
    yield from itertools.product(*choices)
