"""Plans from calls of the op that its author wrote: docstrings, tests, ``__main__`` blocks."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import torch

from gradlint.base.errors import GradlintError
from gradlint.expressions.arguments import parse_arguments
from gradlint.expressions.evaluate import evaluate_arguments
from gradlint.inputs._evidence import Evidence
from gradlint.inputs._plan import Guess, Omitted, Plan, TensorGuess, ValueGuess
from gradlint.inputs._proposals import integer_domain
from gradlint.model.op import Op
from gradlint.targets.example_calls import calls_of_instances, example_calls

#: Cost of a plan with the axes of a call and sizes of its own, with the sizes of the call, and with
#: its very values (heuristic: the author knows best, but equal sizes in a call may be laziness).
_SHAPES, _SIZES, _VALUES = -0.6, -0.4, -0.2
#: What a plan costs less in which axes of size one may have any size (heuristic: a call in a
#: docstring is as short as can be, and one row, one position or one channel hides most faults).
_LONGER = 0.1
#: How the axes of a call begin.
_KNOWN = ("call.", "=")
#: The axes of size one, all of which then have one other size.
_ONES = "call.1"
#: What a square tensor costs more: it hides a transposition.
_SQUARE = 0.9
#: Sizes up to which those of a call are kept: gradients are judged on small tensors.
_LARGEST = 40
#: Elements of a tensor whose values are taken over.
_MOST_ELEMENTS = 4000
#: Deviation up to which sums and norms of float32 values count as one.
_SAME = 1e-4


def example_plans(op: Op, evidence: list[Evidence], first: Plan, seed: int) -> Iterator[Plan]:
    """Plans with what calls in the source pass; other parameters as in ``first``."""
    named = {item.name: item for item in evidence if item.passing != "varargs"}
    for example in _calls(op):
        values = {
            name: value
            for name, text in example.items()
            if name in named
            for known, value in [_value(text, seed)]
            if known
        }
        # What is passed and can't be told from the text, as a device or an object, stays guessed,
        # as the parameters of a module do.
        missing = [n for n, item in named.items() if item.required and n not in example]
        tensors = any(isinstance(value, torch.Tensor) for value in values.values())
        told = tensors if op.module is not None else values
        if told and (op.module is not None or not missing):
            yield from _plans(values, named, first)


def _calls(op: Op) -> list[dict[str, str]]:
    """The calls of ``op``, or of modules of its class, that its author wrote."""
    if op.module is not None:
        return calls_of_instances(type(op.module))
    target = op.function or op.defining
    return [] if target is None else example_calls(target)


def _value(text: str, seed: int) -> tuple[bool, Any]:
    """Whether ``text`` can be evaluated safely, and its value."""
    try:
        args, kwargs = evaluate_arguments(parse_arguments(f"({text}),"), seed)
    except (GradlintError, ValueError, RuntimeError):
        return False, None
    if len(args) != 1 or kwargs:
        return False, None
    return True, args[0]


def _plans(values: dict[str, Any], named: dict[str, Evidence], first: Plan) -> Iterator[Plan]:
    guesses = {name: _guess(named[name], value) for name, value in values.items()}
    order = {name: position for position, name in enumerate(first.names)}
    default = [
        guess if named.get(name) is None or named[name].required else _left_out(guess, named[name])
        for name, guess in zip(first.names, first.guesses, strict=True)
    ]
    for name, guess in guesses.items():
        default[order[name]] = guess
    shaped = replace(first, guesses=tuple(default), cost=0.0)
    squares = _SQUARE * shaped.squares()
    # Where the first tensor has more, one of size one is broadcast to it, or a single number.
    leading = next((guess for _, guess in shaped.tensors() if guess.axes), None)
    short = leading is not None and "=1" in leading.axes
    longer = shaped.mapped(_with_free_ones) if short else shaped
    if longer != shaped:
        yield replace(longer, cost=_SHAPES - _LONGER + _SQUARE * longer.squares())
    yield replace(shaped, cost=_SHAPES + squares)
    # What stands behind `*args` in a call is not among its values: those axes are free.
    known = (symbol for symbol in shaped.symbols() if symbol.startswith(_KNOWN))
    sizes = {symbol: _size(symbol) for symbol in known}
    if all(size <= _LARGEST for size in sizes.values()):
        if longer != shaped:
            kept = tuple(item for item in sizes.items() if item[0] != "=1")
            cost = _SIZES - _LONGER + _SQUARE * longer.squares()
            yield replace(longer, fixed=kept, cost=cost)
        yield replace(shaped, fixed=tuple(sizes.items()), cost=_SIZES + squares)
    for name, value in values.items():
        if isinstance(value, torch.Tensor):
            if value.numel() > _MOST_ELEMENTS:
                return
            guess = guesses[name]
            grad = isinstance(guess, TensorGuess) and guess.grad
            given = ValueGuess(value.detach().requires_grad_(grad), "tensor")
            default[order[name]] = given
    yield replace(first, guesses=tuple(default), cost=_VALUES + squares)


def _with_free_ones(guess: TensorGuess) -> TensorGuess:
    return replace(guess, axes=tuple(_ONES if axis == "=1" else axis for axis in guess.axes))


def _left_out(guess: Guess, item: Evidence) -> Guess:
    """What a call that leaves a parameter to its default passes."""
    if isinstance(guess, (Omitted, ValueGuess)):
        return guess
    return ValueGuess(item.default, "default")


def _guess(item: Evidence, value: Any) -> Guess:
    if not isinstance(value, torch.Tensor) or value.layout != torch.strided:
        return ValueGuess(value, "tensor" if isinstance(value, torch.Tensor) else "value")
    axes = tuple("=1" if size == 1 else f"call.{size}" for size in value.shape)
    if value.dtype == torch.bool:
        return TensorGuess(axes, "bool", grad=False)
    if not value.is_floating_point() and not value.is_complex():
        return TensorGuess(axes, "int", integer_domain(item.name, []), grad=False)
    dtype = "complex" if value.is_complex() else "float"
    domain = "real" if value.is_complex() else item.domain or _domain(value)
    return TensorGuess(axes, dtype, domain, grad=item.differentiable is not False)


def _size(symbol: str) -> int:
    return int(symbol.removeprefix("call.").removeprefix("="))


def _domain(value: torch.Tensor) -> str:
    """The domain that the values of a call suggest."""
    if not value.numel() or not bool(value.isfinite().all()):
        return "real"
    last = value.shape[-1] if value.dim() else 1
    if value.dim() > 1 and value.shape[-2] == last > 1:
        special = _square_domain(value)
        if special:
            return special
    ones = last > 1 and bool((value.norm(dim=-1) - 1).abs().max() < _SAME)
    rising = last > 2 and bool((value.diff(dim=-1) > 0).all())
    if ones or rising:
        return "lengths" if ones else "ordered"
    return _range(value, last)


def _range(value: torch.Tensor, last: int) -> str:
    """The domain by signs and sizes alone."""
    if not bool((value > 0).all()):
        return "real"
    if last > 1 and bool((value.sum(-1) - 1).abs().max() < _SAME):
        return "rows"
    return "unit" if bool((value < 1).all()) else "positive"


def _square_domain(value: torch.Tensor) -> str:
    eye = torch.eye(value.shape[-1], dtype=value.dtype)
    if bool((value @ value.mT - eye).abs().max() < _SAME):
        return "orthogonal"
    if bool((value - value.mT).abs().max() < _SAME):
        return "spd"
    if bool((value.triu(1) == 0).all()):
        return "tril"
    return "triu" if bool((value.tril(-1) == 0).all()) else ""
