"""Elementary changes of a plan."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator
from dataclasses import replace

from gradlint.inputs._frames import FailedAttempt
from gradlint.inputs._plan import GroupGuess, Plan, TensorGuess
from gradlint.inputs._proposals import tensor_axes
from gradlint.inputs.domains import OF_SQUARES
from gradlint.inputs.values import LARGEST_TUPLE

#: Largest size an axis is fixed at because an error text asked for it.
LARGEST_SIZE = 512
#: What it costs to make a matrix square, which hides a transposition (heuristic: as much as a
#: guess that is not on the failing line).
SQUARE_COST = 0.9
#: What it costs to give an input the shape of the gradient returned for it: less than another
#: number of axes where that has sizes of its own, more than to leave out a batch where it has none.
NEW_SIZES, KNOWN_SIZES = 0.25, 0.35
#: What it costs to take rows of integers for tuples of unequal indices, and each further number of
#: members (heuristic: less than another domain of the numbers that they point at).
TUPLES, EACH_MEMBER = 0.1, 0.01


def pairs_to_plans(failed: FailedAttempt, pairs: Iterable[tuple[int, int]]) -> Iterator[Plan]:
    """Plans in which the axes of two sizes are made equal, for each pair of sizes."""
    plan = failed.plan
    for position, (first, second) in enumerate(pairs):
        cost = 0.2 + 0.12 * position
        ones, others = failed.labels.get(first, []), failed.labels.get(second, [])
        for one in ones:
            for other in others:
                yield _tie(plan, one, other, cost)
        constants = {symbol for symbol, _ in plan.fixed}
        if ones and constants.issuperset(others) and 0 < second <= LARGEST_SIZE:
            for one in ones:
                yield from _size(plan, one, second, cost)
        if others and constants.issuperset(ones) and 0 < first <= LARGEST_SIZE:
            for other in others:
                yield from _size(plan, other, first, cost)


def _tie(plan: Plan, one: str, other: str, cost: float) -> Plan:
    if other.startswith("="):
        one, other = other, one
    tied = plan.tied(one, other, cost)
    # A square matrix hides a transposition: it costs more, so that other plans come first.
    return replace(tied, cost=tied.cost + SQUARE_COST) if tied.squares() > plan.squares() else tied


def _size(plan: Plan, symbol: str, size: int, cost: float) -> Iterator[Plan]:
    if not symbol.startswith("="):
        yield plan.sized(symbol, size, cost + (0.15 if size > 1 else 0.8))


def with_rank(plan: Plan, name: str, rank: int, cost: float) -> Plan:
    """The plan with another rank for ``name`` (every element, for a group).

    A first or last axis that was tied or fixed stays so; the others are fresh.
    """
    shared = dict(plan.fixed)
    for symbol, rule in plan.related:
        shared.update(dict.fromkeys((symbol, *rule.bases), 0))
    for other, guess in plan.tensors():
        if other != name:
            shared.update(dict.fromkeys(guess.axes, 0))

    def ranked(label: str, guess: TensorGuess) -> TensorGuess:
        fresh = [axis if axis[0] == "=" else f"{axis}~{rank}" for axis in tensor_axes(label, rank)]
        old = guess.axes
        if old and rank and old[0] in shared:
            fresh[0] = old[0]
        if len(old) > 1 and rank > 1 and old[-1] in shared:
            fresh[-1] = old[-1]
        domain = "real" if rank < 2 and guess.domain in OF_SQUARES else guess.domain
        return replace(guess, axes=tuple(fresh), domain=domain)

    current = plan.guess(name)
    if isinstance(current, TensorGuess):
        return plan.changed(name, ranked(name, current), cost)
    if isinstance(current, GroupGuess):
        index = itertools.count()
        group = current.mapped(lambda item: ranked(f"{name}[{next(index)}]", item))
        return plan.changed(name, group, cost)
    return plan


def without_own_axes(plan: Plan) -> Iterator[Plan]:
    """The plan without a first axis that the first tensor does not have, in all tensors that begin
    with it: forward may have broadcast them by accident."""
    tensors = list(plan.tensors())
    kept = set(tensors[0][1].axes) if tensors else set()
    firsts = [guess.axes[0] for _, guess in tensors[1:] if guess.axes and guess.dtype == "float"]
    for axis in dict.fromkeys(firsts):
        if axis in kept or axis.startswith("=") or axis in dict(plan.fixed):
            continue

        def shorter(guess: TensorGuess, axis: str = axis) -> TensorGuess:
            begins = guess.axes[:1] == (axis,)
            return replace(guess, axes=guess.axes[1:]) if begins else guess

        yield replace(plan.mapped(shorter), cost=plan.cost + 0.2)


def batched(plan: Plan, name: str, rank: int, cost: float) -> Plan:
    """The plan with new axes in front of those of ``name``, so that it has ``rank`` axes."""
    guess = plan.guess(name)
    if not isinstance(guess, TensorGuess):
        return plan
    more = tuple(f"{name}^{index}" for index in range(rank - len(guess.axes)))
    return plan.changed(name, replace(guess, axes=more + guess.axes), cost)


def extended(plan: Plan, name: str, rank: int, cost: float) -> Plan:
    """The plan with new axes behind those of ``name``, so that it has ``rank`` axes."""
    guess = plan.guess(name)
    if not isinstance(guess, TensorGuess):
        return plan
    more = tuple(f"{name}.{index}^" for index in range(len(guess.axes), rank))
    return plan.changed(name, replace(guess, axes=guess.axes + more), cost)


def other_ranks(plan: Plan, more: float = 0.0) -> Iterator[Plan]:
    """The plan with one axis more or less, of all floating tensors at once and of each; ``more`` is
    added to what that costs."""
    floating = dict.fromkeys(name for name, guess in plan.tensors() if guess.dtype == "float")
    for step, cost in ((-1, 0.45 + more), (1, 0.55 + more)):
        together = plan
        for name in floating:
            rank = rank_of(plan, name) or 0
            if rank + step >= 1:
                together = with_rank(together, name, rank + step, 0.0)
                yield with_rank(plan, name, rank + step, cost)
        if len(floating) > 1:
            yield replace(together, cost=plan.cost + cost)


#: What it costs to take an axis from indices, the last one and then the others (heuristic: about as
#: much as from a tensor of numbers).
_OF_FEWER_INDICES, _OF_ANOTHER_AXIS = 0.4, 0.1


def fewer_indices(plan: Plan) -> Iterator[Plan]:
    """The plan without one of the axes of an integer or Boolean tensor: what is read at indices of
    too many axes has more axes than backward expects."""
    for name, guess in plan.tensors():
        own = isinstance(plan.guess(name), TensorGuess) and guess.dtype in ("int", "bool")
        for place in reversed(range(len(guess.axes))) if own and len(guess.axes) > 1 else ():
            axes = guess.axes[:place] + guess.axes[place + 1 :]
            cost = _OF_FEWER_INDICES + _OF_ANOTHER_AXIS * (len(axes) - place)
            yield plan.changed(name, replace(guess, axes=axes), cost)


def like_returned(plan: Plan, returned: dict[int, tuple[int, ...]]) -> Iterator[Plan]:
    """Tensors with as many axes as the gradients that were returned for them, which the engine
    summed to their shapes.

    Args:
        plan: the plan under which that happened.
        returned: position among the tensors that require grad → shape of the gradient.
    """
    for name, shape in _longer_ones(plan, returned):
        yield from _of_shape(plan, name, shape)
        yield with_rank(plan, name, len(shape), 0.3)


def all_like_returned(plan: Plan, returned: dict[int, tuple[int, ...]]) -> Iterator[Plan]:
    """The same for all of them at once, where they are several: alpha and beta of a distribution,
    one for each of its draws."""
    found = list(_longer_ones(plan, returned))
    made = plan
    for name, shape in found if len(found) > 1 else ():
        made = next(_of_shape(made, name, shape), made)
    if made != plan:
        yield made


def _longer_ones(
    plan: Plan, returned: dict[int, tuple[int, ...]]
) -> Iterator[tuple[str, tuple[int, ...]]]:
    """The tensors whose gradients have more axes, and the shapes of these."""
    names = [name for name, guess in plan.tensors() if guess.grad]
    for position, shape in returned.items():
        name = names[position] if position < len(names) else ""
        rank = rank_of(plan, name)
        if name and rank is not None and rank < len(shape):
            yield name, shape


def _of_shape(plan: Plan, name: str, shape: tuple[int, ...]) -> Iterator[Plan]:
    """``name`` with exactly the axes that have these sizes, a square matrix too, which backward
    asks for then; sizes that nothing has follow from others."""
    guess = plan.guess(name)
    labels: dict[int, str] = {}
    for symbol, size in (*plan.sizes().items(), *plan.sizes_of_relations()):
        labels.setdefault(size, symbol)
    if not isinstance(guess, TensorGuess) or not all(0 < size <= LARGEST_SIZE for size in shape):
        return
    made = plan
    sizes = plan.sizes()
    # A shape of sizes that tensors have may come from a batch that only forward broadcasts.
    cost = NEW_SIZES if not set(shape) <= set(sizes.values()) else KNOWN_SIZES
    if not set(shape) <= set(labels):
        for symbol, size in sizes.items():
            made = made if symbol.startswith("=") else made.sized(symbol, size)
    axes = tuple(labels.get(size, f"{name}.{place}^") for place, size in enumerate(shape))
    for axis, size in zip(axes, shape, strict=True):
        made = made if axis in labels.values() else made.sized(axis, size)
    yield made.changed(name, replace(guess, axes=axes), cost)


def rank_of(plan: Plan, name: str) -> int | None:
    """Number of axes of ``name``, None when it is not a tensor."""
    for other, guess in plan.tensors():
        if other == name:
            return len(guess.axes)
    return None


def without_batch(plan: Plan, returned: dict[int, tuple[int, ...]]) -> Iterator[Plan]:
    """Tensors without the batch of their own that gave gradients of others an axis more.

    Args:
        plan: the plan under which that happened.
        returned: position among the tensors that require grad → shape of the gradient.
    """
    sizes = plan.sizes()
    batches = {shape[0] for shape in returned.values() if shape}
    used = [axis for _, guess in plan.tensors() for axis in guess.axes]
    for name, guess in plan.tensors():
        whole = isinstance(plan.guess(name), TensorGuess) and len(guess.axes) > 1
        if whole and used.count(guess.axes[0]) == 1 and sizes[guess.axes[0]] in batches:
            yield plan.changed(name, replace(guess, axes=guess.axes[1:]), 0.3)


def with_unequal_members(plan: Plan) -> Iterator[Plan]:
    """Integers (n, k) whose rows are tuples of k unequal indices into the first axis of the other
    tensors, which has room for one more: where two of the atoms of an angle are one, it has no
    derivative."""
    sizes = plan.sizes()
    for name, guess in plan.tensors():
        whole = isinstance(plan.guess(name), TensorGuess) and len(guess.axes) == 2
        if not whole or guess.dtype != "int" or guess.domain not in ("real", "repeated"):
            continue
        members = guess.axes[1]
        known = members.startswith("=") or members in dict(plan.fixed)
        least = [sizes[members]] if known else range(2, LARGEST_TUPLE + 1)
        for step, count in enumerate(least):
            made = plan if known else plan.sized(members, count)
            owners = {
                other.axes[0]
                for _, other in plan.tensors()
                if other.dtype == "float" and other.axes and other.axes[0] not in guess.axes
            }
            for owner in sorted(owners):
                if not owner.startswith("=") and sizes[owner] <= count:
                    made = made.sized(owner, count + 1)
            high = min((made.sizes()[owner] for owner in owners), default=0)
            if 1 < count <= LARGEST_TUPLE and count < high:
                cost = TUPLES + EACH_MEMBER * step
                yield made.changed(name, replace(guess, high=high), cost)


#: By how many fewer rows than columns a matrix gets that had more (heuristic: a different number,
#: and one that leaves rows of the smallest sizes of a search).
_FEWER = 2


def made_wide(plan: Plan, cost: float) -> Iterator[Plan]:
    """The plan with fewer rows than columns, one matrix after another that has more: of constraints
    there are fewer than of variables, or a system of them is singular."""
    sizes = plan.sizes()
    for _, guess in plan.tensors():
        if guess.dtype != "float" or len(guess.axes) < 2:
            continue
        rows, columns = guess.axes[-2:]
        fewer = sizes[columns] - _FEWER
        if not rows.startswith("=") and sizes[rows] > sizes[columns] and fewer > 0:
            yield plan.sized(rows, fewer, cost)
