"""Moves that give an input the shape of the gradient that was returned for it, or its dtype."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping
from dataclasses import replace
from math import prod

from gradlint.inputs._evidence import Evidence
from gradlint.inputs._frames import FailedAttempt
from gradlint.inputs._moves import rank_of, with_rank
from gradlint.inputs._plan import Plan, TensorGuess

#: Inputs of almost one shape from which on a gradient in the shape of another is taken for a hint
#: (heuristic: gradients that are exchanged are mostly those of two inputs).
MOST_EXCHANGED = 3

#: Weight of the evidence for a number of axes below which a name alone may say it.
_BY_NAME = 2.0

#: Autograd's words where it meets an operation that has no derivative, such as ``//``.
NO_DERIVATIVE_ERROR = re.compile(r"derivative for .* is not implemented")


def tensor_at(plan: Plan, index: int) -> str:
    """The parameter that the engine means by ``index``: it counts tensors alone. Empty for
    tensors inside a group."""
    names = [name for name, _ in plan.tensors()]
    return names[index] if index < len(names) and names[index] in plan.names else ""


def like_gradient(failed: FailedAttempt, match: re.Match[str]) -> Iterator[Plan]:
    """An input of more axes than the gradient returned for it takes the gradient's shape.

    An input never gets more axes: a gradient that should have been reduced fits an input of more
    axes, and would look right. One after the first becomes a scalar, only where nothing says how
    many axes it has: a gradient that was reduced too far fits a scalar too. Sizes may grow to a
    multiple: forward splits its input, and each part was broadcast. Axes are added only where the
    gradient was reduced with ``keepdim`` to another number of elements. Where three or more inputs
    have one shape but for a single axis, as the parts of a quaternion that forward concatenates,
    they take the shape of the one whose gradient fits: what is exchanged between two stays seen.
    """
    index = int(match.group(1))
    plan, name = failed.plan, tensor_at(failed.plan, index)
    got = [int(number) for number in re.findall(r"\d+", match.group(2))]
    guess = plan.guess(name) if name else None
    if not isinstance(guess, TensorGuess):
        return
    if not got:
        numbers = summed(failed.evidence)
        if index and guess.axes and (name in numbers or not _is_told(failed.evidence[name])):
            scalar = with_rank(plan, name, 0, 0.3)
            for other in numbers if name in numbers else ():
                scalar = with_rank(scalar, other, 0, 0.0) if rank_of(scalar, other) else scalar
            yield scalar
        return
    if keeps_axes(match):
        yield from _kept_axes(failed, name, guess, got)
    if 1 in got:
        return
    # A square gradient of a matrix that is not square, as of recurrent weights, can't come from a
    # transposition.
    square = len(set(got)) < len(got)
    yield from _as_another(failed, name, guess, got)
    sizes = [failed.sizes[axis] for axis in guess.axes]
    if len(got) == len(sizes) and all(
        n > 1 and g % n == 0 for g, n in zip(got, sizes, strict=True)
    ):
        grown = zip(guess.axes, sizes, got, strict=True)
        axes = [axis if size == wanted else f"={wanted}" for axis, size, wanted in grown]
        yield plan.changed(name, replace(guess, axes=tuple(axes)), 0.2)
    if len(guess.axes) < len(got) or (len(guess.axes) == len(got) and not square):
        return
    axes = []
    for position, size in enumerate(got):
        symbols = failed.labels.get(size, [])
        own = [symbol for symbol in symbols if symbol in guess.axes]
        axes.append((own or symbols or [f"{name}.{position}'"])[0])
    yield plan.changed(name, replace(guess, axes=tuple(axes)), 0.2)
    # Or only the number of axes of the gradient is right, and the sizes are not.
    yield plan.changed(name, replace(guess, axes=guess.axes[-len(got) :]), 0.25)


def summed(evidence: Mapping[str, Evidence]) -> list[str]:
    """Parameters after the first for which backward returns a sum over all elements, if nothing
    says how many axes they have, or a name says none. Beside one of those, a name says too little:
    a temperature and a bias are both numbers."""
    items = [item for item in list(evidence.values())[1:] if item.summed]
    if all(
        _is_told(item) and max(item.ranks, key=item.ranks.__getitem__, default=1) for item in items
    ):
        return []
    hinted = [max(item.ranks.values(), default=0.0) < _BY_NAME for item in items]
    return [
        item.name
        for item, by_name in zip(items, hinted, strict=True)
        if by_name and not item.shape and not item.least_rank
    ]


def _is_told(item: Evidence) -> bool:
    """Whether anything says how many axes an argument has."""
    return bool(item.ranks or item.shape or item.least_rank)


def like_complex_gradient(failed: FailedAttempt) -> Iterator[Plan]:
    """Inputs are complex where backward returned a complex gradient for one that is real: those of
    which something says so, all of them at once, then one by one."""
    plan = failed.plan
    told = [name for name, item in failed.evidence.items() if "complex" in item.weights]
    made = plan

    def converted(guess: TensorGuess) -> TensorGuess:
        if guess.dtype != "float" or not guess.grad or guess.domain != "real":
            return guess
        return replace(guess, dtype="complex")

    for name in told:
        guess = plan.guess(name)
        if isinstance(guess, TensorGuess):
            made = made.changed(name, converted(guess), 0.0)
    if made != plan:
        yield replace(made, cost=plan.cost + 0.1)
    yield replace(plan.mapped(converted), cost=plan.cost + 0.2)
    for name in plan.names:
        guess = plan.guess(name)
        if isinstance(guess, TensorGuess) and converted(guess) != guess:
            yield plan.changed(name, converted(guess), 0.3)


def without_gradient(failed: FailedAttempt) -> Iterator[Plan]:
    """One input after another, the last one first, requires no gradient: forward may divide by a
    scale with ``//``, which autograd refuses where the scale has a gradient. One input keeps its
    gradient."""
    plan = failed.plan
    names = [name for name, guess in plan.tensors() if guess.grad and name in plan.names]
    for name in reversed(names) if len(names) > 1 else ():
        guess = plan.guess(name)
        if isinstance(guess, TensorGuess) and guess.dtype == "float":
            yield plan.changed(name, replace(guess, grad=False), 0.3)


def as_real(plan: Plan, returned: Collection[int]) -> Iterator[Plan]:
    """Inputs are real where backward returned real gradients for them, and complex ones for others.

    Args:
        plan: the plan under which that happened.
        returned: positions of these inputs among the tensors that require grad.
    """
    names = [name for name, guess in plan.tensors() if guess.grad]
    for name in (names[position] for position in returned if position < len(names)):
        guess = plan.guess(name)
        if isinstance(guess, TensorGuess) and guess.dtype == "complex":
            plan = plan.changed(name, replace(guess, dtype="float"), 0.1)
    yield plan


def _as_another(
    failed: FailedAttempt, name: str, guess: TensorGuess, got: list[int]
) -> Iterator[Plan]:
    plan = failed.plan
    alike = [
        (other, item)
        for other, item in plan.tensors()
        if isinstance(plan.guess(other), TensorGuess)
        and len(item.axes) == len(guess.axes)
        and item.dtype == guess.dtype
        and sum(a != b for a, b in zip(item.axes, guess.axes, strict=True)) <= 1
    ]
    wanted = [item for _, item in alike if [failed.sizes[axis] for axis in item.axes] == got]
    if len(alike) < MOST_EXCHANGED or not wanted:
        return
    for other, item in alike:
        plan = plan.changed(other, replace(item, axes=wanted[0].axes))
    yield replace(plan, cost=failed.plan.cost + 0.2)


def keeps_axes(match: re.Match[str]) -> bool:
    """Whether a gradient of wrong shape has axes of size 1, at least as many axes as its input, and
    more or fewer elements: then an input of that shape was meant. (With as many elements, backward
    lacks a reshape.)"""
    got, expected = ([int(number) for number in re.findall(r"\d+", match.group(k))] for k in (2, 3))
    return 1 in got and len(got) >= len(expected) and prod(got) != prod(expected)


def _kept_axes(
    failed: FailedAttempt, name: str, guess: TensorGuess, got: list[int]
) -> Iterator[Plan]:
    """The shape of a gradient with axes of size 1 broadcasts to a tensor of as many axes."""
    for other, main in failed.plan.tensors():
        sizes = [failed.sizes[axis] for axis in main.axes]
        fits = len(sizes) == len(got) and all(g in (1, n) for g, n in zip(got, sizes, strict=True))
        if other != name and fits:
            axes = tuple("=1" if g == 1 else axis for g, axis in zip(got, main.axes, strict=True))
            yield failed.plan.changed(name, replace(guess, axes=axes), 0.2)


def like_view(failed: FailedAttempt, match: re.Match[str]) -> Iterator[Plan]:
    """ "shape '[]' is invalid for input of size 5" asks a scalar for an axis of that size, "shape
    '[5, 7]' is invalid for input of size 1" a tensor of that shape to be a scalar."""
    wanted = [int(number) for number in re.findall(r"\d+", match.group(1))]
    size = int(match.group(2))
    for name, guess in failed.plan.tensors():
        own = isinstance(failed.plan.guess(name), TensorGuess) and guess.dtype == "float"
        if not own or [failed.sizes[axis] for axis in guess.axes] != wanted:
            continue
        if not wanted:
            for symbol in failed.labels.get(size, ()):
                yield failed.plan.changed(name, replace(guess, axes=(symbol,)), 0.2)
        elif size == 1 and failed.failure.phase == "backward":
            yield with_rank(failed.plan, name, 0, 0.3)
