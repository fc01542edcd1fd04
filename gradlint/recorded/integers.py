"""Small tensors of integers and booleans that show what large ones do.

The first elements of a thousand indices, cut off at the last row of a small table, are often all
the same. What a gradient depends on is whether rows repeat, whether there are several, whether the
first and the last one are met, in which order, and whether some stand for none (-1, -100).
"""

from __future__ import annotations

from collections.abc import Sequence

import torch


def telling(
    before: torch.Tensor, now: torch.Tensor, old: Sequence[int], new: Sequence[int]
) -> torch.Tensor | None:
    """``now``, which was cut from ``before``, with elements that show more of what ``before``
    does; None where it shows all of that, or nothing better is found.

    Args:
        before: integers or booleans as they were recorded.
        now: the same with smaller axes.
        old: sizes of axes of all tensors as they were recorded.
        new: sizes of the same axes now.
    """
    if not now.numel() or now.numel() == before.numel() or now.layout != torch.strided:
        return None
    wanted = features(before)
    if wanted <= features(now):
        return None
    made = _both(before, now) if now.dtype == torch.bool else _indices(before, now, old, new)
    if made is None or made.shape != now.shape:
        return None
    gained = len(wanted & features(made)) > len(wanted & features(now))
    return made if gained and "distinct" not in wanted - features(made) else None


def features(value: torch.Tensor) -> frozenset[str]:
    """What of integers or booleans a gradient may depend on."""
    flat = value.reshape(-1)
    counts = flat.unique(return_counts=True)[1]
    found = set()
    if len(counts) > 1:
        found.add("several")
    if value.dtype == torch.bool:
        return frozenset(found)
    rising = value.diff(dim=-1) if value.dim() else flat.diff()
    if bool((counts > 1).any()):
        found.add("repeated")
    if value.dim() and value.shape[-1] > 1:
        found.add("sorted" if bool((rising >= 0).all()) else "unsorted")
        if bool((value.sort(-1).values.diff(dim=-1) > 0).all()):
            found.add("distinct")
    if bool((flat < 0).any()):
        found.add("none")
    if bool((flat >= 0).any()) and not int(flat[flat >= 0].min()):
        found.add("first")
    return frozenset(found)


def _both(before: torch.Tensor, now: torch.Tensor) -> torch.Tensor:
    """A mask with both values: the rarer one at the end."""
    made = now.clone().reshape(-1)
    made[-1] = not bool(made[0])
    return made.reshape(now.shape)


def _indices(
    before: torch.Tensor, now: torch.Tensor, old: Sequence[int], new: Sequence[int]
) -> torch.Tensor | None:
    """Elements of ``before``, in their order, as indices into an axis that is smaller now."""
    flat, count = before.reshape(-1), now.numel()
    most = int(flat.max())
    if most <= 0 or most in old:  # ends of segments are no indices
        return None
    tops = [(size, small - 1) for size, small in zip(old, new, strict=True) if size > most]
    top = min(tops)[1] if tops else max(int(now.max()), 1)
    if top < 1:
        return None
    chosen = flat[_places(flat, count)]
    kept = chosen[chosen >= 0].unique()
    low = int(flat[flat >= 0].min() > 0 and top > 1)
    # The k-th of the different ones, spread over all that may be: the first and the last are met.
    spread = torch.linspace(low, top, len(kept)).round().to(flat.dtype)
    made = torch.where(chosen < 0, chosen, spread[torch.searchsorted(kept, chosen.clamp(min=0))])
    wanted = features(before)
    if "repeated" in wanted and "repeated" not in features(made) and count > 2:
        inner = [k for k in range(count) if low < int(made[k]) < top]
        made[inner[0] if inner else -1] = low
    made = made.reshape(now.shape)
    if "sorted" in wanted:
        return made.sort(-1).values
    if "unsorted" in wanted and "sorted" in features(made):
        return made.flip(-1)
    return made


def _places(flat: torch.Tensor, count: int) -> torch.Tensor:
    """``count`` places: of a largest and a smallest element, of one that stands for none, of two
    that are the same, and others from everywhere."""
    found = [int(flat.argmax()), int(torch.where(flat < 0, flat.max(), flat).argmin())]
    found += [int(flat.argmin())] if bool((flat < 0).any()) else []
    values, counts = flat.unique(return_counts=True)
    again = values[(counts > 1) & (values >= 0)]
    for value in again[:1]:
        found += (flat == value).nonzero().reshape(-1)[:2].tolist()
    spread = torch.linspace(0, len(flat) - 1, min(len(flat), 4 * count)).round().long().tolist()
    places = list(dict.fromkeys([*found, *spread, *range(len(flat))]))[:count]
    return torch.tensor(sorted(places))
