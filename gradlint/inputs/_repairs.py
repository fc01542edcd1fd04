"""Moves from a failed plan to plans that repair what its error complained about."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator
from dataclasses import replace
from math import isqrt, prod

from gradlint.inputs._attempt import COMPLEX_GRADIENT_ERROR, GRADIENT_SHAPE_ERROR
from gradlint.inputs._conditions import from_conditions
from gradlint.inputs._domain_repairs import from_domains
from gradlint.inputs._evidence import Evidence
from gradlint.inputs._frames import FailedAttempt
from gradlint.inputs._gradient_repairs import (
    NO_DERIVATIVE_ERROR,
    keeps_axes,
    like_complex_gradient,
    like_gradient,
    tensor_at,
    without_gradient,
)
from gradlint.inputs._kind_repairs import from_kinds
from gradlint.inputs._moves import LARGEST_SIZE, SQUARE_COST, pairs_to_plans, rank_of, with_rank
from gradlint.inputs._plan import OTHER_SIZES, Plan, TensorGuess, ValueGuess
from gradlint.inputs._rank_repairs import from_ranks, on_a_plane
from gradlint.model.related import Formula

#: Dtypes to try where float64 is refused, and the words of a refusal that suggest each.
_LOWER_PRECISION = {
    "float32": r"(?i)double|float64|dtype|scalar type|float32|\bfp32\b|single.precision",
    "bfloat16": r"(?i)bf16|bfloat16",
    "float16": r"(?i)\bhalf\b|\bfloat16|fp16",
}

_SHOWN_SHAPE = re.compile(r"[\[(]\s*(\d+(?:\s*,\s*\d+)*)\s*,?\s*[\])]|\b(\d+(?:x\d+)+)\b")
#: Phrases that name two sizes which should be equal.
_PAIR_PATTERNS = (
    r"tensor a \((\d+)\) must match the size of tensor b \((\d+)\)",
    r"\(\d+x(\d+) and (\d+)x\d+\)",
    r"to have (\d+) channels,? but got (\d+)",
    r"[Ee]xpected size (\d+) but got size (\d+)",
    r"\b(\d+)(?: elements| channels| features| entries)?,? but (?:got|found)[^\d\[]*\[?(\d+)",
    r"[Ee]xpected .{0,60}?\b(\d+),? (?:but )?got (?:\w+ )?(\d+)",
    r"(\d+) (?:!=|vs\.?|is not equal to|does not match|and) (\d+)",
    r"batch_size \((\d+)\) to match target batch_size \((\d+)\)",
)
#: How many elements there may be of what is counted, and numbers that are tried at most.
_COUNTS = ("n + 1", "2 * n", "n * (n - 1) // 2", "n * (n + 1) // 2", "n * n")
_MOST_COUNTS = 6
#: What it costs more to let all indices be zero, where there could be more places for them: which
#: place belongs to which index is then not seen (heuristic: as much as a square matrix, which hides
#: a transposition).
SINGLE_PLACE_COST = SQUARE_COST
#: Numbers that are positions, not sizes.
_POSITIONS = re.compile(
    r"(?i)\b(?:dim(?:ension)?s?|argument|position|axis|index|arg|at|operand|element|number|groups=|"
    r"stride=|batch|input)\s*[#:]?\s*-?\d+"
)


#: What is said where as many places were counted as a window does not have in what is shorter.
_TOO_LARGE_A_WINDOW = re.compile(r"negative dimension")

#: What operations say of two dtypes: where backward raises it, forward may have made complex
#: numbers of real ones.
_MIXED = re.compile(r"(?i)\bsame dtype|complex(?:double|float)")


def repairs(failed: FailedAttempt) -> Iterator[Plan]:
    """Plans that answer the failure of ``failed``, the most plausible first."""
    if match := GRADIENT_SHAPE_ERROR.search(failed.failure.text):
        yield from like_gradient(failed, match)
        # A wrong gradient whose shape fits is found by its values. But a missing reduction would be
        # right for an input of higher rank: an error of backward must not raise a rank.
        name = tensor_at(failed.plan, int(match.group(1)))
        kept = keeps_axes(match)
        yield from (p for p in _general(failed) if kept or not _rises(failed.plan, p, name))
        return
    mixed = failed.failure.phase == "backward" and _MIXED.search(failed.failure.text)
    if COMPLEX_GRADIENT_ERROR in failed.failure.text or mixed:
        yield from like_complex_gradient(failed)
        return
    if NO_DERIVATIVE_ERROR.search(failed.failure.text):
        yield from without_gradient(failed)
    yield from on_a_plane(failed)
    if failed.failure.phase == "backward":
        yield from _like_namesakes(failed)
    yield from _general(failed)


def _like_namesakes(failed: FailedAttempt) -> Iterator[Plan]:
    """What forward only saves, and gets no gradient, has the shape of the tensor whose name its own
    begins or ends with: ``weight_backward`` that of ``weight``; or else of any other."""
    plan = failed.plan
    others = {name: guess for name, guess in plan.tensors() if guess.axes and guess.grad}
    alone = [
        (name, guess)
        for name, guess in plan.tensors()
        if not guess.axes and name in plan.names and _is_saved_constant(failed.evidence.get(name))
    ]
    alike = plan
    for name, guess in alone:
        words = name.lower().split("_")
        kin = [o for o in others if o.lower() in (words[0], words[-1]) or name.startswith(o + "_")]
        if kin:
            alike = alike.changed(name, replace(guess, axes=others[kin[0]].axes))
    if alike is not plan:
        yield replace(alike, cost=plan.cost + 0.2)
    for name, guess in alone:
        for other in others.values():
            yield plan.changed(name, replace(guess, axes=other.axes), 0.4)


def _is_saved_constant(item: Evidence | None) -> bool:
    return item is not None and item.differentiable is False and item.saved is not None


def _rises(before: Plan, after: Plan, name: str) -> bool:
    """Whether the tensor called ``name`` has more axes than before."""
    if not name:
        return False
    old, new = before.guess(name), after.guess(name)
    return (
        isinstance(old, TensorGuess)
        and isinstance(new, TensorGuess)
        and len(new.axes) > len(old.axes)
    )


def _general(failed: FailedAttempt) -> Iterator[Plan]:
    yield from from_conditions(failed)
    yield from from_kinds(failed)
    yield from from_ranks(failed)
    yield from _sizes(failed)
    yield from _indices(failed)
    yield from _other_pools(failed)
    yield from _convolutions(failed)
    yield from _special_matrices(failed)
    yield from from_domains(failed)
    yield from _domains_and_dtypes(failed)


def _sizes(failed: FailedAttempt) -> Iterator[Plan]:
    yield from _views(failed)
    yield from _slices(failed)
    yield from _squared(failed)
    yield from _repeated(failed)
    yield from _sums(failed)
    yield from _lengths(failed)
    yield from pairs_to_plans(failed, size_pairs(failed.failure.text))


#: A length that is asked for, and those that are not so long.
_LENGTH = re.compile(r"must have length (\d+)\. Got (\d+)(?: and (\d+))?")


def _lengths(failed: FailedAttempt) -> Iterator[Plan]:
    """ "inputs dimension -1 must have length 3. Got 5 and 13" where axes are 6 and 13 long: all of
    these at once; the first is a part of an axis, ``q[..., 1:]``, that is to be longer by one."""
    match = _LENGTH.search(failed.failure.text)
    if match is None:
        return
    wanted, *found = (int(number) for number in match.groups() if number)
    if all(size in failed.labels or size == wanted for size in found):
        return  # whole axes: all moves for two sizes are for them
    plan = failed.plan
    for size in found:
        more = 0 if size in failed.labels or size == wanted else 1
        for symbol in failed.labels.get(size + more, ()) if size != wanted else ():
            if not symbol.startswith("="):
                plan = plan.sized(symbol, wanted + more)
    if plan is not failed.plan:
        yield replace(plan, cost=failed.plan.cost + 0.15)


def _sums(failed: FailedAttempt) -> Iterator[Plan]:
    """ "(16x16 and 17x7)" where axes are 5, 6 and 11 long: what was put one behind the other is to
    be as long, 5 + 11 as 6 + 11, so that the first ones are equal."""
    pairs = [
        (one, one + second - first)
        for first, second in size_pairs(failed.failure.text)
        if first not in failed.labels and second not in failed.labels
        for one in failed.labels
        if first - one in failed.labels and one + second - first in failed.labels
    ]
    yield from pairs_to_plans(failed, pairs or _first_parts(failed))


def _first_parts(failed: FailedAttempt) -> list[tuple[int, int]]:
    """ "(16x16 and 15x1)" where axes are 5, 11, 6 and 9 long: one part of 5 + 11 is to be as long
    as one of 6 + 9, and then the other ones."""
    return [
        (one, other)
        for first, second in size_pairs(failed.failure.text)
        if first not in failed.labels and second not in failed.labels
        for one in failed.labels
        if first - one in failed.labels
        for other in failed.labels
        if second - other in failed.labels and other != one
    ]


def _views(failed: FailedAttempt) -> Iterator[Plan]:
    """ "shape '[5, 1, 117]' is invalid for input of size 1287": the two counts differ by a ratio
    of two sizes, which should be one."""
    view = r"shape '\[([\d, ]+)\]' is invalid for input of size (\d+)"
    match = re.search(view, failed.failure.text)
    if match is None:
        return
    shape = [int(number) for number in match.group(1).split(",")]
    wanted = prod(shape)
    given = int(match.group(2))
    pairs = [
        (one, other)
        for one in failed.labels
        for other in failed.labels
        if one != other and one * wanted == other * given
    ]
    yield from pairs_to_plans(failed, pairs)
    # Or an axis of what is viewed is a product of axes of others, whose sizes must then stay.
    kept = failed.plan
    for axis, size in failed.sizes.items():
        if size in shape and axis[0] != "=":
            kept = kept.sized(axis, size)
    for _, guess in failed.plan.tensors():
        if prod(failed.sizes[axis] for axis in guess.axes) != given:
            continue
        for step, axis in enumerate(reversed(guess.axes)):
            size, left = divmod(failed.sizes[axis] * wanted, given)
            shared = any(axis in other.axes for _, other in failed.plan.tensors() if other != guess)
            if not left and 1 < size <= LARGEST_SIZE and not shared and axis[0] != "=":
                yield kept.sized(axis, size, 0.3 + 0.1 * step)


def _slices(failed: FailedAttempt) -> Iterator[Plan]:
    """ "size of tensor a (2) must match the size of tensor b (4)" in ``h[:, :2] / h[:, 2:]`` of 6
    columns: the second part is one column, or as many as the first."""
    match = re.search(_PAIR_PATTERNS[0], failed.failure.text)
    if match is None:
        return
    first, second = int(match.group(1)), int(match.group(2))
    if first in failed.labels and second in failed.labels:
        return
    for symbol in failed.labels.get(first + second, ()):
        if not symbol.startswith("="):
            least = min(first, second)
            for step, size in enumerate(dict.fromkeys((least + 1, 2 * least))):
                yield failed.plan.sized(symbol, size, 0.15 + 0.1 * step)


#: How often one tensor is repeated along an axis, at most, where what comes of it is compared.
_MOST_REPEATS = 8


def _repeated(failed: FailedAttempt) -> Iterator[Plan]:
    """ "size of tensor a (20) must match the size of tensor b (26)" where axes are 10 and 13 long:
    these are to be equal, as the heads of keys and values that are repeated for all queries."""
    for first, second in size_pairs(failed.failure.text):
        if first in failed.labels and second in failed.labels:
            continue
        for times in range(2, _MOST_REPEATS + 1):
            if not first % times and not second % times:
                pair = first // times, second // times
                if all(size in failed.labels for size in pair):
                    yield from pairs_to_plans(failed, [pair])


def _squared(failed: FailedAttempt) -> Iterator[Plan]:
    """ "size of tensor a (49) must match the size of tensor b (25)" where axes are 7 and 5 long:
    these are to be equal, as in ``torch.eye(n * n) - torch.kron(a, a)``. In "25x25 and 42x1", a
    matrix of 42 elements is to have 5 rows and columns: forward solves for its elements."""
    for pair in size_pairs(failed.failure.text):
        roots = [isqrt(size) for size in pair]
        known = [
            root > 1 and root**2 == size and root in failed.labels
            for root, size in zip(roots, pair, strict=True)
        ]
        if all(known):
            yield from pairs_to_plans(failed, [(roots[0], roots[1])])
        elif any(known):
            root, elements = (roots[0], pair[1]) if known[0] else (roots[1], pair[0])
            yield from _square_of(failed, elements, failed.labels[root][0])


def _square_of(failed: FailedAttempt, elements: int, symbol: str) -> Iterator[Plan]:
    """Matrices of so many elements as square ones, with ``symbol`` for both axes."""
    for name, guess in failed.plan.tensors():
        whole = isinstance(failed.plan.guess(name), TensorGuess) and len(guess.axes) == 2
        if whole and prod(failed.sizes[axis] for axis in guess.axes) == elements:
            yield failed.plan.changed(name, replace(guess, axes=(symbol, symbol)), 0.3)


def size_pairs(text: str) -> list[tuple[int, int]]:
    """Pairs of sizes that an error text says should be equal, the most plausible first."""
    lists = [
        [int(number) for number in re.split(r"[,x]", (match.group(1) or match.group(2)))]
        for match in _SHOWN_SHAPE.finditer(text)
    ]
    candidates = itertools.chain(
        _pairs_in_words(text), _pairs_of_shapes(text, lists), _pairs_of_numbers(text, lists)
    )
    unequal = (pair for pair in candidates if pair[0] != pair[1])
    return list(itertools.islice(dict.fromkeys(unequal), 12))


def _pairs_in_words(text: str) -> Iterator[tuple[int, int]]:
    """Pairs in phrases that PyTorch and authors use for sizes that differ."""
    for pattern in _PAIR_PATTERNS:
        for match in re.finditer(pattern, text):
            yield int(match.group(1)), int(match.group(2))
    view = r"shape '\[([\d, -]+)\]' is invalid for input of size (\d+)"
    for shown, size in re.findall(view, text):
        for number in re.findall(r"\d+", shown):
            if int(number) != 1:
                yield int(number), int(size)


def _pairs_of_shapes(text: str, lists: list[list[int]]) -> Iterator[tuple[int, int]]:
    """Pairs of axes of shapes that follow each other."""
    if last := re.search(r"size (\d+) in (?:the )?last dim", text):
        yield lists[-1][-1] if lists else 0, int(last.group(1))
    for shape, next_shape in itertools.pairwise(lists):
        if len(shape) >= 2 and len(next_shape) >= 2 and "matmul" in text:
            yield shape[-1], next_shape[-2]
        if "batch" in text:
            yield shape[0], next_shape[0]
        # Shapes are compared from the last axis on, as in broadcasting.
        for first, second in zip(shape[::-1], next_shape[::-1], strict=False):
            if 1 not in (first, second):
                yield first, second


def _pairs_of_numbers(text: str, lists: list[list[int]]) -> Iterator[tuple[int, int]]:
    """Any two numbers, neighbours first."""
    plain = [int(number) for number in re.findall(r"(?<![\w.])\d+\b", _POSITIONS.sub("", text))]
    plain += [number for numbers in lists for number in numbers]
    if len(plain) > 2:
        plain = [number for number in plain if number != 1]
    yield from itertools.pairwise(plain)
    if len(plain) <= 6:
        for index, one in enumerate(plain):
            for other in plain[index + 2 :]:
                yield one, other


def _indices(failed: FailedAttempt) -> Iterator[Plan]:
    """Lower values for integers that are out of range."""
    text, plan = failed.failure.text, failed.plan
    beyond = (
        r"(?i)out of (range|bounds)|invalid index|exceed|too large|outside|inconsistent with ind"
    )
    if not re.search(beyond, text):
        return
    match = re.search(r"(?i)(?:with size|dim \d+, size is) (\d+)", text)
    size = int(match.group(1)) if match else 0
    more_places: list[Plan] = []
    if re.search(r"index -1 is out of bounds", text):
        yield from _without_roots(plan)
    if outside := re.search(r"index (\d+) is out of bounds", text):
        yield from _vectors(failed, size)
        # A loop over a longer axis than the one that it indexes; a reversed loop starts at its end.
        last = int(outside.group(1)) + 1
        longer = [other for other in failed.labels if other > size and other != last]
        yield from pairs_to_plans(failed, [(last, size), *((other, size) for other in longer)])
        yield from _counted(failed, last, size)
        if size == 1:
            more_places = list(_two_places(plan))
            yield from more_places
    yield from _lower_indices(plan, failed, size, SINGLE_PLACE_COST if more_places else 0.0)
    for name, other in zip(plan.names, plan.guesses, strict=True):
        if isinstance(other, ValueGuess) and type(other.value) is int:
            for value in (-1, 0, 1, 2):
                if value != other.value:
                    yield plan.changed(name, ValueGuess(value, "int"), 0.5 + 0.05 * abs(value))


def _without_roots(plan: Plan) -> Iterator[Plan]:
    """Parents that are plain indices: of the rows to which children are added, not of a tree, whose
    roots have −1."""
    for name, guess in plan.tensors():
        own = plan.guess(name) if name in plan.names else None
        if isinstance(own, TensorGuess) and guess.domain == "ancestors":
            yield plan.changed(name, replace(own, domain="real"), 0.1)


def _vectors(failed: FailedAttempt, size: int) -> Iterator[Plan]:
    """``w[k]`` with ``k`` below ``w.numel()`` wants a vector ``w``: tensors of more axes, the first
    one as long as said, where no integers are among the arguments."""
    if any(guess.dtype == "int" for _, guess in failed.plan.tensors()):
        return
    for name, guess in failed.plan.tensors():
        several = name in failed.plan.names and len(guess.axes) > 1
        if several and failed.sizes[guess.axes[0]] == size:
            yield with_rank(failed.plan, name, 1, 0.2)


def _counted(failed: FailedAttempt, least: int, size: int) -> Iterator[Plan]:
    """An axis that has as many elements as there are pairs, or more than another one has: the
    smallest numbers that suffice."""
    sizes = failed.sizes
    symbols = [s for s in failed.labels.get(size, ()) if not s.startswith("=")]
    numbers = {
        number: base
        for text in _COUNTS
        for base in sizes
        if least <= (number := Formula(text).at([sizes[base]])) <= LARGEST_SIZE
    }
    for step, number in enumerate(sorted(numbers)[:_MOST_COUNTS]):
        base = numbers[number]
        kept = failed.plan if base.startswith("=") else failed.plan.sized(base, sizes[base])
        for symbol in symbols:
            if symbol != base:
                yield kept.sized(symbol, number, 0.25 + 0.03 * step)


def _two_places(plan: Plan) -> Iterator[Plan]:
    """Two in place of an integer argument that is one, and indices below it."""
    lower = plan
    for name, guess in plan.tensors():
        if guess.dtype == "int" and isinstance(plan.guess(name), TensorGuess):
            lower = lower.changed(name, replace(guess, high=2))
    for name, value in zip(plan.names, plan.guesses, strict=True):
        if isinstance(value, ValueGuess) and type(value.value) is int and value.value == 1:
            yield lower.changed(name, ValueGuess(2, "int"), 0.25)


def _lower_indices(
    plan: Plan, failed: FailedAttempt, size: int, extra: float = 0.0
) -> Iterator[Plan]:
    """Integer tensors with values below ``size``; a permutation of an axis of that size.

    Args:
        extra: what zeros alone cost more.
    """
    for name, guess in plan.tensors():
        if guess.dtype != "int" or not isinstance(plan.guess(name), TensorGuess):
            continue
        if guess.domain == "permutation" or guess.domain.startswith("inverse"):
            for symbol in failed.labels.get(size, ()):
                if guess.axes and symbol != guess.axes[-1]:
                    yield plan.tied(symbol, guess.axes[-1], 0.3)
        for high in (size, 2, 1):
            if high > 0 and (guess.high == 0 or high < guess.high):
                cost = 0.3 + (extra if high == 1 else 0.0)
                yield plan.changed(name, replace(guess, high=high), cost)


def _other_pools(failed: FailedAttempt) -> Iterator[Plan]:
    """Sizes that are even, or powers of two."""
    plan = failed.plan
    asked = r"(?i)divisible|multiple of|is invalid for input of size|power of|even\b"
    if re.search(asked, failed.failure.text):
        for index, pool in enumerate(OTHER_SIZES[:2]):
            if plan.pool != pool:
                yield replace(plan, pool=pool, cost=plan.cost + 0.5 + 0.3 * index)


def _convolutions(failed: FailedAttempt) -> Iterator[Plan]:
    """Input and weight of a convolution with as many axes, and windows that fit."""
    text, plan = failed.failure.text, failed.plan
    if match := re.search(r"list of (\d) values to match the convolution.*=\[([\d, ]+)\]", text):
        weight, given = int(match.group(1)) + 2, match.group(2).count(",") + 3
        for name in _suspects(failed):
            rank = rank_of(plan, name)
            if rank in (weight, given) and weight != given:
                yield with_rank(plan, name, given if rank == weight else weight, 0.25)
    if match := re.search(r"Kernel size: \(([\d x]+)\)", text):
        # A window larger than what it slides over.
        window = plan
        for size, small in zip(match.group(1).split(" x "), (3, 2, 3), strict=False):
            for symbol in failed.labels.get(int(size), ())[:1]:
                window = window.sized(symbol, small)
        yield replace(window, cost=plan.cost + 0.2)
    elif _TOO_LARGE_A_WINDOW.search(text):
        tensors = list(plan.tensors())
        for name, guess in tensors[::-1]:
            others = {axis for other, its in tensors if other != name for axis in its.axes}
            window = plan
            for axis, small in zip(guess.axes[:-3:-1], (3, 2), strict=False):
                window = window if axis in others else window.sized(axis, small)
            if window is not plan:
                yield replace(window, cost=plan.cost + 0.2)


def _special_matrices(failed: FailedAttempt) -> Iterator[Plan]:
    """Square matrices, definite ones."""
    text, plan = failed.failure.text, failed.plan
    if re.search(r"(?i)square|same size on the last two", text):
        for name in _suspects(failed):
            guess = plan.guess(name)
            if isinstance(guess, TensorGuess):
                wide = guess if len(guess.axes) > 1 else None
                changed = plan if wide else with_rank(plan, name, 2, 0.3)
                last = changed.guess(name)
                if isinstance(last, TensorGuess) and last.axes[-1] != last.axes[-2]:
                    yield changed.tied(last.axes[-2], last.axes[-1], 0.3)
    if re.search(r"(?i)definite|cholesky|singular|not invertible", text):
        for name in _suspects(failed):
            guess = plan.guess(name)
            if isinstance(guess, TensorGuess) and len(guess.axes) > 1:
                domain = "nsd" if guess.domain == "spd" else "spd"
                changed = plan.changed(name, replace(guess, domain=domain), 0.3)
                yield changed.tied(guess.axes[-2], guess.axes[-1])


def _domains_and_dtypes(failed: FailedAttempt) -> Iterator[Plan]:
    """Domains of values that an error text asks for, and lower precision."""
    text, plan = failed.failure.text, failed.plan
    if re.search(r"(?i)>=? ?0|<=? ?1|0 and 1|\[0, ?1\]|probab|non-?negative|positive", text):
        for position, name in enumerate(_suspects(failed)):
            guess = plan.guess(name)
            for step, domain in enumerate(("unit", "positive", "rows")):
                if isinstance(guess, TensorGuess) and guess.domain != domain:
                    cost = 0.25 + 0.1 * step + 0.1 * position
                    yield plan.changed(name, replace(guess, domain=domain), cost)
    for working, words in _LOWER_PRECISION.items():
        if plan.working == "float64" and re.search(words, text):
            yield replace(plan, working=working, cost=plan.cost + 0.9)


def _suspects(failed: FailedAttempt) -> list[str]:
    floating = [name for name, guess in failed.plan.tensors() if guess.dtype == "float"]
    blamed = [name for name in failed.blamed() if name in floating]
    return blamed + [name for name in floating if name not in blamed]
