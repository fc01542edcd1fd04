"""How the values of recorded tensors are described: by a domain of the language of specs where they
are any numbers of it, and one by one where they mean more."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence

import torch

from gradlint.inputs.seen_domains import CLOSE, FEWEST_ORDERED, is_structured

#: Elements that say which numbers a tensor may have (heuristic: signs of fewer are a chance).
FEWEST = 8
#: Tensors of one argument that are looked at.
MOST_TENSORS = 32


def structures(
    seen: Mapping[str, Sequence[torch.Tensor]],
) -> tuple[dict[str, str], frozenset[str]]:
    """For each argument its domain in words of a spec, and the arguments whose values are kept.

    Args:
        seen: argument → its tensors in all calls.
    """
    domains: dict[str, str] = {}
    exact: set[str] = set()
    for name, tensors in seen.items():
        known = [tensor.detach() for tensor in tensors[:MOST_TENSORS] if tensor.numel()]
        if not known or known[0].layout != torch.strided:
            continue
        if not known[0].is_floating_point():
            if not known[0].is_complex() and all(map(_is_arranged, known)):
                exact.add(name)
            continue
        domain = _domain([tensor.double() for tensor in known])
        if domain is None:
            exact.add(name)
        else:
            domains[name] = domain
    return domains, frozenset(exact)


def ranges(
    seen: Mapping[str, Sequence[torch.Tensor]], domains: Mapping[str, str]
) -> dict[str, str]:
    """``domains`` with the interval that the values lie in, for arguments of which no more is
    known than a sign."""
    found = dict(domains)
    for name, domain in domains.items():
        if domain not in ("reals", "positive", "nonnegative", "negative"):
            continue
        finite = [t.double()[t.isfinite()] for t in seen[name][:MOST_TENSORS] if t.numel()]
        finite = [tensor for tensor in finite if tensor.numel()]
        if finite:
            low = min(float(tensor.min()) for tensor in finite)
            high = max(float(tensor.max()) for tensor in finite)
            if low < high:
                found[name] = f"[{_rounded(low, math.floor)}, {_rounded(high, math.ceil)}]"
    return found


def _domain(known: Sequence[torch.Tensor]) -> str | None:
    """The domain of floating values; None where it can't be said."""
    if not all(bool(tensor.isfinite().all()) for tensor in known):
        return None
    constant = all(bool((tensor == known[0].reshape(-1)[0]).all()) for tensor in known)
    if all(map(is_structured, known)) and not constant:
        tests: dict[str, Callable[[torch.Tensor], bool]] = {
            "probability": _rows_sum_to_one,
            "spd": _is_positive_definite,
            "unit vectors": _is_unit,
            "increasing": _is_increasing,
        }
        return next((name for name, test in tests.items() if all(map(test, known))), None)
    low = min(float(tensor.min()) for tensor in known)
    high = max(float(tensor.max()) for tensor in known)
    if low < 0 < high or sum(tensor.numel() for tensor in known) < FEWEST:
        return "reals" if low < 0 else _positive(low, high)
    return _positive(low, high) if low >= 0 else "negative" if high < 0 else "nonpositive"


def _positive(low: float, high: float) -> str:
    if low == 0:
        return "nonnegative"
    return "open unit" if high < 1 else "positive"


def _rows_sum_to_one(value: torch.Tensor) -> bool:
    if value.dim() == 0 or value.shape[-1] < 2 or bool((value == value.round()).all()):
        return False
    return bool((value >= 0).all()) and bool(((value.sum(-1) - 1).abs() < CLOSE).all())


def _is_unit(value: torch.Tensor) -> bool:
    wide = value.dim() > 0 and value.shape[-1] > 1
    return wide and bool(((value.norm(dim=-1) - 1).abs() < CLOSE).all())


def _is_increasing(value: torch.Tensor) -> bool:
    wide = value.dim() > 0 and value.shape[-1] >= FEWEST_ORDERED
    return wide and bool((value.diff(dim=-1) > 0).all())


def _is_positive_definite(value: torch.Tensor) -> bool:
    if value.dim() < 2 or value.shape[-1] != value.shape[-2] or value.shape[-1] < 2:
        return False
    size = float(value.abs().max())
    if not bool(((value - value.mT).abs() <= CLOSE * size).all()):
        return False
    return bool((torch.linalg.eigvalsh((value + value.mT) / 2) > 0).all())


def _is_arranged(value: torch.Tensor) -> bool:
    """Whether integers are in an order, or a permutation; not what is constant."""
    if value.dtype == torch.bool or value.dim() == 0 or value.shape[-1] < 2:
        return False
    rising = value.diff(dim=-1)
    if bool((rising >= 0).all()) and bool((rising > 0).any()):
        return True
    counted = torch.arange(value.shape[-1])
    return bool((value.sort(-1).values == counted).all())


def _rounded(value: float, towards: Callable[[float], int]) -> str:
    """``value`` with three digits, moved outwards."""
    if not value:
        return "0"
    unit = 10.0 ** (math.floor(math.log10(abs(value))) - 2)
    return f"{towards(value / unit) * unit:g}"
