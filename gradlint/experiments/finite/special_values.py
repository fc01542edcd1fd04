"""Special values: zeros, ties, large and tiny ones, the identity, and single special elements.

Each function takes the values of all inputs and their ranges, and returns the values with those
replaced that their range allows, or None where nothing would change.
"""

from __future__ import annotations

import math
import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass

import torch

from gradlint.experiments.finite.value_ranges import ValueRange
from gradlint.numerics.products import rms

#: Largest magnitudes of "large" values by dtype, and the smallest: spread evenly in the logarithm,
#: so that exp overflows in some elements only, and squares in none. Some 14 times the argument at
#: which exp overflows, so that it does under a temperature, too, and a twelfth power does not; in
#: 16 bits larger ones, as differences see little there.
LARGE = {torch.float32: 1e3, torch.complex64: 1e3, torch.float16: 1e3}
LARGE_ELSE, LEAST_LARGE = 1e4, 10.0

#: Tiny values, in units of the smallest normal number of the dtype: their squares vanish.
TINY = 8.0

#: Significant bits of the number that all elements are where they are equal: few enough for sums of
#: millions of its squares in float64.
FEW_BITS = 5

#: By how much a rotation may miss that its rows are orthonormal (heuristic: roundings of float32,
#: or of a lower dtype of its own).
ORTHONORMAL = 1e-5

#: Size of a rotation at most (heuristic: of space, or of a small layer; others cost too much).
MOST_TURNED = 16

#: Special elements in one input, at most (heuristic: each costs two calls).
MOST_PLACES = 6

#: Bounds that ops have beside those in their arguments and their source (heuristic: ±1 and a half
#: are the commonest bounds of clamps, hard nonlinearities and surrogates).
USUAL_BOUNDS = (1.0, -1.0, 0.5)


#: Names of logarithms of scales; not those of probabilities, weights and potentials, which are
#: meant to be any numbers.
_LOG_OF_SCALE = re.compile(
    r"(?i)(?:log|ln)_?(?:scale|sigma|std|stddev|sd|var|variance|rate|prec|precision|temp|temperature"
    r"|tau|kappa|lambda|lam|dispersion|concentration|df|nu|dt|step|theta|length_?scale|length|ell?|l"
    r"|width|bandwidth|bw|amplitude|amp|gain|noise|shape|mass)s?(?:_\w+)?"
)


@dataclass(frozen=True)
class SpecialElement:
    """One special element: flat index ``element`` of input ``position``, and what is special about
    it; ``twin`` is the element that it equals, where that makes it special."""

    position: int
    element: int
    words: str
    value: float
    twin: int | None = None


def is_log_of_scale(name: str) -> bool:
    """Whether an input of that name is the logarithm of a scale: of a positive number that the op
    computes with, so that its exp is no number that anybody has long before it overflows."""
    return _LOG_OF_SCALE.fullmatch(name.rpartition(".")[2]) is not None


def largest(dtype: torch.dtype) -> float:
    """The largest magnitude of "large" values of ``dtype``."""
    return LARGE.get(dtype, LARGE_ELSE)


def zeros(
    values: Sequence[torch.Tensor], ranges: Sequence[ValueRange]
) -> list[torch.Tensor] | None:
    """Every element zero."""

    def vanish(value: torch.Tensor, allowed: ValueRange) -> torch.Tensor | None:
        return torch.zeros_like(value) if allowed.zero and allowed.all_zero else None

    return _each(values, ranges, vanish)


def ties(values: Sequence[torch.Tensor], ranges: Sequence[ValueRange]) -> list[torch.Tensor] | None:
    """All elements of an input equal, at a typical size of its own: a short number, of which sums
    and means are exact. Differences from the mean are zero then, and no remainders of rounding that
    a formula divides by."""

    def equal(value: torch.Tensor, allowed: ValueRange) -> torch.Tensor | None:
        if not allowed.equal or value.numel() < 2:
            return None
        size = rms(value) or 1.0
        if allowed.rows:
            size = 1.0 / max(value.shape[-1] if value.dim() else 1, 1)
        elif allowed.high <= 0.0:
            size = -size
        short = _short(size, taken)
        if allowed.rows or not allowed.holds(short):
            short = size
        taken.add(short)
        return torch.full_like(value, short)

    taken: set[float] = set()
    return _each(values, ranges, equal)


def _short(number: float, taken: Collection[float]) -> float:
    """The nearest number with :data:`FEW_BITS` significant bits, or the next larger one that is not
    ``taken`` by another input: their difference is not meant to vanish."""
    significand, exponent = math.frexp(number)
    found = round(significand * 2**FEW_BITS)
    while math.ldexp(found, exponent - FEW_BITS) in taken:
        found += 1
    return math.ldexp(found, exponent - FEW_BITS)


def large(
    values: Sequence[torch.Tensor], ranges: Sequence[ValueRange]
) -> list[torch.Tensor] | None:
    """Magnitudes from :data:`LEAST_LARGE` to :func:`largest`. Where the sample has both signs, each
    element has the other one: a maximum that was positive is negative, and the largest element of
    a row is another."""

    def grown(value: torch.Tensor, allowed: ValueRange) -> torch.Tensor | None:
        top = largest(value.dtype)
        if allowed.rows or not (allowed.holds(top) or allowed.holds(-top)):
            return None
        spread = _spread(value, LEAST_LARGE, top)
        both = not value.is_complex() and bool((value > 0).any()) and bool((value < 0).any())
        return -spread if both else spread

    return _each(values, ranges, grown)


def tiny(values: Sequence[torch.Tensor], ranges: Sequence[ValueRange]) -> list[torch.Tensor] | None:
    """A few times the smallest normal number of the dtype, with the signs of the sample."""

    def shrunk(value: torch.Tensor, allowed: ValueRange) -> torch.Tensor | None:
        if not (allowed.holds(1e-30) or allowed.holds(-1e-30)):
            return None
        return _signs(value) * (TINY * torch.finfo(value.dtype).tiny)

    return _each(values, ranges, shrunk)


def identity(
    values: Sequence[torch.Tensor], ranges: Sequence[ValueRange]
) -> list[torch.Tensor] | None:
    """One input that turns by no angle: the identity in place of orthogonal matrices, or of unit
    quaternions, the real part of which is first here. The others stay: two rotations that are equal
    have a distance without a derivative."""
    done = False

    def turned_back(value: torch.Tensor, _: ValueRange) -> torch.Tensor | None:
        nonlocal done
        found = None if done else _identity_like(value)
        done = done or found is not None
        return found

    return _each(values, ranges, turned_back)


def coincident(
    values: Sequence[torch.Tensor], ranges: Sequence[ValueRange]
) -> list[torch.Tensor] | None:
    """Two rows of each input equal, and the first row of those as wide as an input before them, but
    with another number of rows, equal to that one's: points in one place. Square matrices stay:
    they would be singular; and so would bands of one that are given apart."""
    first: dict[tuple[int, torch.dtype], torch.Tensor] = {}

    def met(value: torch.Tensor, allowed: ValueRange) -> torch.Tensor | None:
        wide = value.dim() >= 2 and value.shape[-1] > 1 and value.shape[-2] > 1
        if not wide or not allowed.equal or value.shape[-1] == value.shape[-2]:
            return None
        found = value.clone()
        known = first.setdefault((value.shape[-1], value.dtype), found)
        if known.shape != found.shape:
            found[..., 0, :] = known.reshape(-1, value.shape[-1])[0]
        found[..., 1, :] = found[..., 0, :]
        return found

    return _each(values, ranges, met)


def _identity_like(value: torch.Tensor) -> torch.Tensor | None:
    """The identity in the shape of rotations, None if ``value`` holds none."""
    size = value.shape[-1] if value.dim() and value.is_floating_point() else 0
    square = value.dim() > 1 and value.shape[-2] == size
    if not 2 <= size <= MOST_TURNED or not (square or size == 4):
        return None
    eye = torch.eye(size, dtype=value.dtype, device=value.device)
    off = value @ value.mT - eye if square else value.norm(dim=-1) - 1.0
    if not float(off.abs().max()) <= max(ORTHONORMAL, 4.0 * torch.finfo(value.dtype).eps):
        return None
    return (eye if square else eye[0]).expand_as(value).clone()


def saturated(value: torch.Tensor, low: float, high: float) -> torch.Tensor:
    """Magnitudes between ``low`` and ``high``, in the order of the sample's, with its signs."""
    return _spread(value, low, high)


def single(
    values: Sequence[torch.Tensor], ranges: Sequence[ValueRange], bounds: Sequence[float]
) -> tuple[list[torch.Tensor], list[SpecialElement]] | None:
    """One element zero, two equal ones, and elements that equal ``bounds`` in every input.

    Args:
        bounds: numbers that may be thresholds of the op, the likeliest first.
    """
    found, places = [], []
    for position, (value, allowed) in enumerate(zip(values, ranges, strict=True)):
        changed = value.clone()
        flat = changed.view(-1) if changed.is_contiguous() else None
        if flat is None or value.is_complex() or not value.is_floating_point():
            found.append(changed)
            continue
        if flat.numel() < 2 and any(value.numel() < 2 for value in values[:position]):
            found.append(changed)  # 0 / 0 says nothing about either
            continue
        order = _scattered(flat.numel(), position)
        mine: list[SpecialElement] = []
        if len(order) >= 3 and allowed.equal and not allowed.rows:
            a, b = order[0], order[1]
            flat[b] = flat[a]
            mine.append(
                SpecialElement(position, b, "equals another element", float(flat[b]), twin=a)
            )
            order = order[2:]
        wanted = [0.0, *(bound for bound in bounds if bound)]
        if flat.numel() < 2:
            wanted = wanted[:1]
        for bound in wanted:
            if len(mine) >= MOST_PLACES or not order:
                break
            if allowed.holds(bound):
                element = order.pop(0)
                flat[element] = bound
                mine.append(
                    SpecialElement(position, element, f"is {bound:g}", float(flat[element]))
                )
        found.append(changed)
        places += mine
    return (found, places) if places else None


def is_symmetric(value: torch.Tensor) -> bool:
    """Whether a tensor holds matrices that are symmetric, and neither diagonal nor constant."""
    if value.dim() < 2 or value.layout != torch.strided or not value.is_floating_point():
        return False
    if not (value.shape[-1] == value.shape[-2] > 1 and value.numel()):
        return False
    constant = bool((value == value.reshape(-1)[0]).all())
    return not constant and bool(value.tril(-1).any()) and torch.allclose(value, value.mT)


def as_symmetric(value: torch.Tensor, before: torch.Tensor) -> torch.Tensor:
    """``value``, or its symmetric form if the matrices ``before`` were symmetric: what depends on
    that, as the gradient of another input, would be wrong elsewhere. An element that was changed
    stands on both sides of the diagonal; of two, the lower one."""
    if not is_symmetric(before):
        return value
    changed = value != before
    upper = torch.where(changed.mT, value.mT, value)
    below = torch.where(changed, value, upper).tril(-1)
    return below + below.mT + value.tril().triu()


def _each(
    values: Sequence[torch.Tensor], ranges: Sequence[ValueRange], change: object
) -> list[torch.Tensor] | None:
    assert callable(change)
    found, changed = [], False
    for value, allowed in zip(values, ranges, strict=True):
        usable = value.is_floating_point() or value.is_complex()
        new = change(value, allowed) if usable and value.numel() else None
        found.append(value if new is None else new)
        changed |= new is not None and not torch.equal(new, value)
    return found if changed else None


def _signs(value: torch.Tensor) -> torch.Tensor:
    signs = value.sgn()
    return torch.where(signs == 0, torch.ones_like(signs), signs)


def _spread(value: torch.Tensor, low: float, high: float) -> torch.Tensor:
    count = value.numel()
    rank = value.abs().flatten().argsort().argsort().to(torch.float64)
    share = (rank + 1.0) / max(count, 1)
    size = torch.exp(math.log(low) + share * math.log(high / low))
    return (_signs(value) * size.reshape(value.shape)).to(value.dtype)


def _scattered(count: int, position: int) -> list[int]:
    """A few different elements of ``count``, in another order for every input: elementwise ops meet
    one special element at a time."""
    if not count:
        return []
    stride = max(1, count // (MOST_PLACES + 2)) | 1
    found = list(dict.fromkeys((k * stride) % count for k in range(MOST_PLACES + 2)))
    turn = position * (3 if len(found) > 3 else 1) % len(found)
    return found[turn:] + found[:turn]
