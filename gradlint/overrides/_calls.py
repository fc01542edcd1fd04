"""Compares the results of torch's functions on instances of a class and on plain tensors."""

from __future__ import annotations

import inspect
import itertools
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any

import torch

from gradlint.overrides._signatures import required

#: Methods by which a tensor-like object returns the tensor that it represents.
DENSE = ("to_dense", "dense", "to_tensor", "tensor", "full")

#: Second arguments that may be an instance too.
_OTHERS = ("other", "mat2", "tensor2", "vec", "vec2")

#: Constructors are tried with these, argument by argument.
_GUESSES: dict[Any, tuple[Any, ...]] = {int: (3,), float: (2.0,), str: ("m",), bool: (True,)}

#: Combinations of guesses that are tried.
MOST_GUESSES = 64

#: Share of the largest element that rounding may change.
CLOSE = 1e-4


@dataclass(frozen=True)
class Trial:
    """One function called on an instance; ``kind`` is "" where nothing was wrong."""

    func: Callable[..., Any]
    kind: str = ""
    severity: str = ""
    message: str = ""


def instance_factory(cls: Any) -> tuple[Callable[[], Any] | None, str]:
    """What makes an instance of ``cls``; or None, and why."""
    given = getattr(cls, "sample_inputs", None)
    if callable(given):
        try:
            found = given()
            found = found[0] if isinstance(found, (tuple, list)) else found
            if isinstance(found, cls):
                return lambda: _first(given()), ""
        except Exception as error:
            return None, f"sample_inputs raises {type(error).__name__}"
    for arguments in itertools.islice(_guesses(cls), MOST_GUESSES):
        try:
            if dense(cls(*arguments)) is not None:
                return lambda arguments=arguments: cls(*arguments), ""
        except Exception:
            continue
    return None, (
        "no instance could be made: add a static method sample_inputs that returns one, and a "
        f"method that gives its tensor ({', '.join(DENSE)})"
    )


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


def tried(cls: type, make: Callable[[], Any], func: Callable[..., Any]) -> Trial | None:
    """Call ``func`` on instances; None where it can't be called with instances alone, raises, or
    does not return a tensor for plain ones either."""
    needed = required(_testing().get(func))
    if needed is None or not needed or len(needed) > 2 or (needed[1:] and needed[1] not in _OTHERS):
        return None
    try:
        plain = [t for t in (dense(make()) for _ in needed) if t is not None]
        expected, again = (_seeded(func, [t.clone() for t in plain], seed) for seed in (0, 1))
    except Exception:
        return None
    if not isinstance(expected, torch.Tensor):
        return None
    try:
        got = _seeded(func, [make() for _ in needed], 0)
    except Exception:
        return None  # an exception is not a silent mistake
    return _judged(cls, func, got, expected, again)


def _seeded(func: Callable[..., Any], arguments: list[Any], seed: int) -> Any:
    torch.manual_seed(seed)
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
    if value is None or "empty" in getattr(func, "__name__", "") or not _same(expected, again):
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


def _guesses(cls: Any) -> Any:
    generator = torch.Generator().manual_seed(0)
    square = torch.randn((3, 3), generator=generator)
    if issubclass(cls, torch.Tensor) and cls.__new__ is torch.Tensor.__new__:
        yield (square,)
    try:
        parameters = list(inspect.signature(cls).parameters.values())
    except (TypeError, ValueError):
        yield (square,)
        return
    needed = [
        p
        for p in parameters
        if p.default is p.empty and p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)
    ]
    names = {"int": int, "float": float, "str": str, "bool": bool}
    choices = [
        _GUESSES.get(names.get(p.annotation, p.annotation), (square, 3, 2.0, "m")) for p in needed
    ]
    yield from itertools.product(*choices)
