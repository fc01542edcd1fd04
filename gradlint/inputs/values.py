"""Values of the tensors of a plan: spread out, away from zero and from each other.

Values are quantiles of a distribution in shuffled order with a little jitter, so that no two are
closer than a share of their spacing: random kinks (ties, zeros) do not occur.
"""

from __future__ import annotations

import re
import warnings
from dataclasses import dataclass
from math import prod
from typing import Any

import torch

from gradlint.inputs._attributes import put_together
from gradlint.inputs._plan import (
    GroupGuess,
    Guess,
    ListGuess,
    Omitted,
    Plan,
    TensorGuess,
    ValueGuess,
)
from gradlint.inputs.bounds import kept
from gradlint.inputs.domains import OF_SQUARES
from gradlint.inputs.unlike import made_unlike
from gradlint.model.sample import has_fields

#: Share of the spacing between neighbouring values by which each is moved (heuristic).
_JITTER = 0.3
#: Domain → start and width of an interval.
_INTERVALS = {
    "signs": (0.0, 1.0),
    "binary": (0.0, 1.0),
    "unit": (0.1, 0.8),
    "above": (1.2, 2.0),
    "alike": (1.0, 0.6),  # as the sides of a triangle are
    "negative": (-0.3, -1.7),
    # About a half: neither at nor beyond the limits that thresholds and scales have.
    "offset": (0.35, 0.5),
    "positive": (0.3, 1.7),
}
#: Names of integers of which several may be equal without being degenerate.
_LABELS = re.compile(r"label|target|class|^y|token|^tags?$|^k$|^n$|count|hits|trials")
#: Members of a tuple of indices, at most: the four corners of a torsion.
LARGEST_TUPLE = 4
#: Distance kept from zero, in units of the standard deviation (heuristic).
_GAP = 0.12


@dataclass(frozen=True, eq=False)
class Built:
    """Arguments made from a plan: positional ones and those passed by name."""

    args: tuple[Any, ...]
    kwargs: dict[str, Any]


def build(plan: Plan, seed: int, keywords: frozenset[str] = frozenset()) -> Built:
    """Arguments for ``plan``; ``keywords`` are the parameters passed by name.

    Positional parameters after an omitted one are passed by name too.
    """
    generator = torch.Generator().manual_seed(seed)
    sizes = plan.sizes()
    made: dict[str, torch.Tensor] = {}
    positional: list[Any] = []
    named: dict[str, Any] = {}
    omitted = False
    values = {
        name: _make(name, guess, plan, sizes, generator, made)
        for name, guess in zip(plan.names, plan.guesses, strict=True)
    }
    if plan.bounds:
        values |= kept(plan.bounds, {k: v for k, v in values.items() if torch.is_tensor(v)})
    for name, which in plan.unlike:
        if isinstance(values[name], torch.Tensor) and values[name].dtype == torch.int64:
            values[name] = made_unlike(values[name], which, generator)
    objects = _objects(plan, values)
    for name, guess in zip(plan.names, plan.guesses, strict=True):
        if isinstance(guess, Omitted):
            omitted = True
            continue
        owner = name.partition(".")[0]
        if owner != name and owner not in objects:
            continue  # an object is passed once
        value = values[name] if owner == name else objects.pop(owner)
        if isinstance(guess, GroupGuess) and guess.splice:
            positional.extend(value)
        elif name in keywords or omitted:
            named[owner] = value
        else:
            positional.append(value)
    return Built(tuple(positional), named)


def _objects(plan: Plan, values: dict[str, Any]) -> dict[str, Any]:
    """The objects whose attributes are among the arguments of ``plan``, by name."""
    found: dict[str, dict[str, Any]] = {}
    for name in plan.names:
        owner, _, attribute = name.partition(".")
        if attribute:
            found.setdefault(owner, {})[attribute] = values[name]
    return {owner: put_together(held, beyond=owner in plan.beyond) for owner, held in found.items()}


def _make(
    name: str,
    guess: Guess,
    plan: Plan,
    sizes: dict[str, int],
    generator: torch.Generator,
    made: dict[str, torch.Tensor],
) -> Any:
    if isinstance(guess, TensorGuess):
        tensor = _tensor(guess, plan, sizes, generator, made)
        if guess.dtype == "int" and guess.domain in ("real", "repeated"):
            high = guess.high or min(sizes.values(), default=3)
            tensor = _apart(name, guess, tensor, plan, high, made)
        made[name] = tensor
        return tensor
    if isinstance(guess, GroupGuess):
        return _grouped(
            guess, [_make(name, item, plan, sizes, generator, made) for item in guess.items]
        )
    if isinstance(guess, ListGuess):
        return guess.values(plan.cut(guess)[1])
    if isinstance(guess, Omitted):
        return None
    return _value(guess, plan, sizes)


def _value(guess: ValueGuess, plan: Plan, sizes: dict[str, int]) -> Any:
    """A value that is no tensor; it may follow from the first tensor of the plan."""
    if guess.kind == "shape-of":
        first = next((tensor for _, tensor in plan.tensors()), None)
        return tuple(sizes[axis] for axis in first.axes) if first is not None else (2, 3)
    if guess.kind == "numbers-of":
        first = next((tensor for _, tensor in plan.tensors() if tensor.axes), None)
        count = sizes[first.axes[-1]] if first is not None else 2
        return [guess.value * (1 + k / 4) for k in range(count)]
    # Lists and dicts are copied: an op may write to them.
    return type(guess.value)(guess.value) if type(guess.value) in (list, dict) else guess.value


def _grouped(guess: GroupGuess, items: list[Any]) -> Any:
    """The container of a group, with its items."""
    if guess.keys:
        return dict(zip(guess.keys, items, strict=True))
    return guess.container(*items) if has_fields(guess.container) else guess.container(items)


def _tensor(
    guess: TensorGuess,
    plan: Plan,
    sizes: dict[str, int],
    generator: torch.Generator,
    made: dict[str, torch.Tensor],
) -> torch.Tensor:
    shape = [sizes[axis] for axis in guess.axes]
    count = 1
    for size in shape:
        count *= size
    if guess.dtype == "bool" and guess.domain in ("mostly", "all"):
        return _mask(shape, guess.domain)
    if guess.dtype == "bool":
        flat = torch.arange(count) % 2 == 0
        if count > 2:
            flat = flat[torch.randperm(count, generator=generator)]
        return _rows_of_both(flat.reshape(shape))
    if guess.dtype == "int":
        return _integers(guess, shape, count, sizes, generator, made)
    dtype = getattr(torch, plan.working)
    values = spread(guess.domain, shape, count, generator)
    if guess.dtype == "complex":
        values = torch.complex(values, spread("real", shape, count, generator))
        dtype = torch.complex128 if plan.working == "float64" else torch.complex64
    values = values.to(dtype)
    if guess.layout:
        values = _sparse(values, guess.layout, whole=guess.domain in OF_SQUARES)
    return values.requires_grad_(guess.grad)


def _sparse(values: torch.Tensor, layout: str, *, whole: bool = False) -> torch.Tensor:
    """``values`` with every other element left out, or it would be sparse in name only.

    Args:
        whole: whether they are square matrices of a kind that is lost without the diagonal.
    """
    kept = torch.arange(values.numel()).reshape(values.shape) % 2 == 0
    if whole:
        kept |= torch.eye(values.shape[-1], dtype=torch.bool)
    if layout == "coo" or values.dim() < 2:
        return (values * kept).to_sparse()
    with warnings.catch_warnings():
        # That the layout is in beta concerns no user of the op.
        warnings.simplefilter("ignore")
        return (values * kept).to_sparse_csr()


def _integers(
    guess: TensorGuess,
    shape: list[int],
    count: int,
    sizes: dict[str, int],
    generator: torch.Generator,
    made: dict[str, torch.Tensor],
) -> torch.Tensor:
    if guess.domain.startswith("inverse of "):
        other = made.get(guess.domain.removeprefix("inverse of "))
        if other is not None and other.dim() and list(other.shape) == shape:
            return other.argsort(dim=-1)
    if guess.domain in ("permutation",) or guess.domain.startswith("inverse of "):
        return _permutation(spread("real", shape, count, generator).argsort(dim=-1))
    if guess.domain in ("offsets", "pointers", "ancestors") and len(shape) == 1:
        return _row_of_integers(guess, count, generator)
    high = guess.high or min(sizes.values(), default=3)
    if guess.domain == "sizes":
        # The largest size occurs, and shorter ones beside it, but none that is empty.
        order = torch.randperm(count, generator=generator) if count else torch.zeros(0).long()
        most = guess.high or max(2, min(3, *sizes.values(), 3))
        return most - (order % max(most - 1, 1)).reshape(shape)
    if guess.domain == "increasing" and shape:
        return _increasing(shape, max(high, 1), generator)
    if guess.domain == "real" and not guess.high and 2 < count <= high:
        high = (high + 1) // 2  # labels and groups occur more than once
    return _indices(guess.domain, count, max(high, 1), generator).reshape(shape)


def _apart(
    name: str,
    guess: TensorGuess,
    tensor: torch.Tensor,
    plan: Plan,
    high: int,
    made: dict[str, torch.Tensor],
) -> torch.Tensor:
    """``tensor``, with indices that belong together unequal: the members of an edge, of a bond, of
    a triangle. The distance of a point to itself has no derivative, and a triangle of which two
    corners are one has no area. Labels may be equal."""
    if _LABELS.search(name.lower()):
        return tensor
    held = dict(plan.fixed)
    for axis in (0, 1) if tensor.dim() == 2 else ():
        tuples = guess.axes[axis].startswith("=") or guess.axes[axis] in held
        if tuples and 1 < tensor.shape[axis] <= min(LARGEST_TUPLE, high):
            members = list(tensor.unbind(axis))
            for place, member in enumerate(members):
                members[place] = _unequal(member, members[:place], high)
            if guess.domain == "repeated" and len(members) == 2:
                members = _grouped_apart(members, high)
            return torch.stack(members, axis)
    others = [
        other
        for key, other in made.items()
        if other.dtype == torch.int64 and other.shape == tensor.shape and not _LABELS.search(key)
    ]
    apart = _unequal(tensor, others, high)
    alone = guess.domain == "repeated" and len(others) == 1
    return _grouped_otherwise(apart, others[0], high) if alone else apart


def _make_same_groups(one: torch.Tensor, other: torch.Tensor) -> bool:
    """Whether two rows of indices are equal at the same places."""
    return bool((one == one.unsqueeze(1)).equal(other == other.unsqueeze(1)))


def _grouped_otherwise(values: torch.Tensor, other: torch.Tensor, high: int) -> torch.Tensor:
    """``values`` with other groups than ``other``, another row of indices, if both make the same:
    one index for all but one place, nowhere equal to the other's, and not increasing."""
    if values.dim() != 1 or len(values) < 3 or not _make_same_groups(values, other):
        return values
    for place in (1, 0, len(values) - 1):
        rest = torch.arange(len(values)) != place
        most = next((k for k in range(high) if not bool((other[rest] == k).any())), None)
        lone = [k for k in reversed(range(high)) if k != most and k != int(other[place])]
        if most is not None and lone and (place == 1 or (lone[0] > most) == (place == 0)):
            made = torch.where(rest, most, lone[0])
            if not _make_same_groups(made, other):
                return made
    return values


def _grouped_apart(ends: list[torch.Tensor], high: int) -> list[torch.Tensor]:
    """Both ends of edges below ``high``, with other groups where both make the same: what is summed
    over the one is that over the other then."""
    count = len(ends[0])
    if not _make_same_groups(*ends) or count < 3 or high < 3:
        return ends
    # Neither end has the first place and the last one alone: what is wrong for sources alone would
    # look like a fault at the boundary.
    pattern = torch.tensor([[high - 1, high - 1, high // 2], [high // 2, 0, 0]])
    return list(pattern[:, torch.arange(count) % 3])


def _unequal(values: torch.Tensor, others: list[torch.Tensor], high: int) -> torch.Tensor:
    """``values`` with those raised, modulo ``high``, that are equal to one of ``others``."""
    for _ in others if len(others) < high else ():
        for other in others:
            values = torch.where(values == other, (values + 1) % high, values)
    return values


def _permutation(order: torch.Tensor) -> torch.Tensor:
    """``order`` with no row that is its own inverse, where there is room: a backward that applies
    it a second time would look right."""
    if order.dim() == 0 or order.shape[-1] < 3:
        return order
    itself = (order.argsort(dim=-1) == order).all(dim=-1, keepdim=True)
    return torch.where(itself, torch.arange(order.shape[-1]).roll(1), order)


def _indices(domain: str, count: int, high: int, generator: torch.Generator) -> torch.Tensor:
    """``count`` indices below ``high``, unsorted."""
    if domain == "distinct" and count <= high:
        return torch.randperm(high, generator=generator)[:count]
    order = torch.randperm(count, generator=generator) if count else torch.zeros(0).long()
    if domain in ("repeated", "marked") and count > 1:
        made = _repeated(count, high)[order]
        if domain == "marked":
            made[::3] = -1  # what stands for nothing
        return made
    return order % high


def _repeated(count: int, high: int) -> torch.Tensor:
    """Indices below ``high``: the last and the first occur, one occurs twice, and one between is
    left out."""
    middle = high // 2
    kept = [high - 1, 0, *(k for k in range(1, high - 1) if k != middle)]
    cycled = [kept[k % len(kept)] for k in range(count)]
    if count > 2:
        cycled[-1] = high - 1
    return torch.tensor(cycled)


def _rows_of_both(mask: torch.Tensor) -> torch.Tensor:
    """``mask`` with True and False in every row."""
    if mask.dim() > 1 and mask.shape[-1] > 1:
        alike = mask.all(-1) | ~mask.any(-1)
        mask[..., 0] ^= alike
    return mask


def _mask(shape: list[int], domain: str) -> torch.Tensor:
    """True everywhere, or but for the last element of every other row: sequences that all begin,
    columns that all have several elements."""
    mask = torch.ones(shape, dtype=torch.bool)
    if domain == "mostly" and shape and shape[-1] > 1:
        rows = mask.reshape(-1, shape[-1])
        rows[len(rows) > 1 :: 2, -1] = False
    return mask


def _row_of_integers(guess: TensorGuess, count: int, generator: torch.Generator) -> torch.Tensor:
    """Integers that make sense only as a row: bounds of segments, or parents in a tree."""
    if guess.domain == "offsets":
        return torch.arange(count)
    if guess.domain == "pointers":
        return torch.linspace(0, guess.high or count, max(count, 1)).round().long()
    # Each entry is one of the positions before it; the first has none.
    order = torch.randperm(count, generator=generator).tolist()
    return torch.tensor([order[i] % i if i else -1 for i in range(count)])


def _increasing(shape: list[int], high: int, generator: torch.Generator) -> torch.Tensor:
    """Integers below ``high`` that increase along the last axis, strictly where there is room."""
    step = high / max(shape[-1], 1)
    starts = (torch.arange(shape[-1]) * step).long().expand(shape)
    room = torch.rand(shape, generator=generator) * max(int(step) - 1, 0)
    return starts + room.round().long()


def _logarithms(domain: str, shape: list[int], generator: torch.Generator) -> torch.Tensor:
    """Of rows that sum to one; for "shares" without their last elements."""
    whole = shape if domain == "logs" else [*shape[:-1], (shape[-1] if shape else 1) + 1]
    values = spread("rows", whole, prod(whole), generator).log()
    return values if domain == "logs" else values[..., :-1].reshape(shape)


def spread(domain: str, shape: list[int], count: int, generator: torch.Generator) -> torch.Tensor:
    """``count`` float64 values of ``domain`` in the given shape, no two of them close together."""
    square = len(shape) >= 2 and shape[-1] == shape[-2]
    if domain == "nsd":
        return -spread("spd", shape, count, generator)
    if domain in ("logs", "shares"):
        return _logarithms(domain, shape, generator)
    if domain in OF_SQUARES and square:
        return _matrices(domain, shape, count, generator)
    level = _levels(shape, count, generator)
    if domain in ("signs", "binary"):
        ones = _rows_of_both(level > 0.5).double()
        level = ones if domain == "binary" else 2 * ones - 1
    if domain == "ball" and not shape:
        domain = "small"
    if domain in ("real", "corners", "rows", "lengths", "ball", "ordered", *OF_SQUARES):
        return _reals(domain, shape, level)
    if domain == "small":
        values = 1.6 * level - 0.8
        return values + torch.where(values < 0, -0.05, 0.05)
    start, width = _INTERVALS.get(domain, _INTERVALS["positive"])
    return start + width * level


def _levels(shape: list[int], count: int, generator: torch.Generator) -> torch.Tensor:
    """Levels of quantiles in (0, 1), evenly spaced but for a little jitter, in shuffled order."""
    positions = torch.arange(count, dtype=torch.float64) + 0.5
    jitter = torch.rand(count, generator=generator, dtype=torch.float64) - 0.5
    level = (positions + _JITTER * jitter) / max(count, 1)
    if count == 1:
        # A single value at the median would be zero.
        level = 0.72 + 0.1 * jitter
    return level[torch.randperm(count, generator=generator)].reshape(shape)


def _reals(domain: str, shape: list[int], level: torch.Tensor) -> torch.Tensor:
    """Normal values, kept away from zero; as rows that sum to 1, unit vectors, vectors shorter than
    one, boxes, or increasing."""
    if domain == "corners" and shape and shape[-1] > 1:
        return _boxes(level)
    values = torch.special.ndtri(level)
    values = values + _GAP * torch.where(values < 0, -1.0, 1.0)
    if domain == "real" or domain in OF_SQUARES or not shape:
        return values
    if domain == "rows":
        return values.softmax(-1)
    if domain in ("lengths", "ball"):
        lengths = 0.2 + 0.6 * level[..., :1] if domain == "ball" else 1.0
        return lengths * values / values.norm(dim=-1, keepdim=True)
    return values.sort(-1).values if domain == "ordered" else values


#: From which length on the sides of boxes are, by how much more, and how far from zero on their
#: lower corners lie (heuristic: most pairs overlap, some do not, and few hold one another).
_SIDES, _LOWER = (0.4, 1.2), 1.4
#: The image of a box whose number stands before its corners, less what is left of it where it is
#: made an integer (heuristic: images come in twos at least).
_IMAGES, _OFF_WHOLE = 2, 0.25


def _boxes(level: torch.Tensor) -> torch.Tensor:
    """Rows of a lower and an upper corner; of an odd number of columns, the first one says in which
    image a box lies."""
    half = level.shape[-1] // 2
    first, low, side = level.tensor_split([level.shape[-1] % 2, level.shape[-1] - half], -1)
    images = torch.arange(first.numel(), dtype=level.dtype).reshape(first.shape) % _IMAGES
    low, long = _LOWER * low, _SIDES[0] + _SIDES[1] * side
    if long.dim() > 1 and len(long):
        long[0] = long[0] + _LOWER  # the first ones of two tensors overlap
    return torch.cat([images + _OFF_WHOLE, low, low + long], -1)


def turning(orthogonal: torch.Tensor) -> torch.Tensor:
    """Square orthogonal matrices with their last columns reversed where they reflect: what is meant
    for rotations is right for these alone."""
    signs = torch.linalg.det(orthogonal).sgn()
    last = orthogonal[..., -1:] * signs[..., None, None]
    return torch.cat([orthogonal[..., :-1], last], -1)


#: What is added on the diagonal of a contraction so that its determinant is positive, with room to
#: be moved (heuristic: not one, at which powers and logarithms hide factors).
DIAGONAL = 1.3


def _matrices(
    domain: str, shape: list[int], count: int, generator: torch.Generator
) -> torch.Tensor:
    """Square matrices of a domain in :data:`OF_SQUARES`."""
    factor = spread("real", shape, count, generator)
    if domain in ("triu", "upper"):
        return spread("tril", shape, count, generator).mT.contiguous()
    if domain == "skew":
        return factor - factor.mT
    if domain == "orthogonal":
        return turning(torch.linalg.qr(factor).Q)
    eye = torch.eye(shape[-1], dtype=torch.float64)
    if domain in ("contraction", "dominant"):
        # The spectral radius is at most the norm, and a norm of 0.6 leaves it room to be moved.
        made = 0.6 * factor / torch.linalg.matrix_norm(factor, ord=2, keepdim=True)
        # Beside more than the identity, no symmetry hides a transposition.
        return made + DIAGONAL * eye if domain == "dominant" else made
    if domain == "spd":
        return 0.3 * factor @ factor.mT + (1 + 0.3 * torch.arange(shape[-1])) * eye
    diagonal = spread("positive", shape[:-1], count // max(shape[-1], 1), generator)
    return 0.5 * factor.tril(-1) + torch.diag_embed(diagonal + 0.4)
