"""What the tensors of given inputs are, as far as their values and the code of the op show.

Further samples differ from the first one in values that keep its preconditions. Inference knows
these; of inputs that somebody gave they are read from the values: numbers of both signs without any
structure may be any number, integers that are in no order may be any index.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace

import torch

from gradlint.inputs._evidence import Evidence
from gradlint.inputs._gather import gather
from gradlint.inputs._plan import TensorGuess
from gradlint.inputs._proposals import propose
from gradlint.inputs.documentation import documented_ball, documented_interval, prose
from gradlint.inputs.domains import CONFINED, DOMAINS
from gradlint.model.op import Op
from gradlint.model.related import Bound
from gradlint.model.sample import Sample

#: Deviation up to which a structure counts as seen: that of values written with six digits.
CLOSE = 1e-5

#: Elements along the last axis from which on an order is no chance: one of four in order by chance
#: is one of 24 (heuristic).
FEWEST_ORDERED = 4

#: Domains of integers that are no free choice.
_CONFINED_INTEGERS = ("sizes", "permutation", "pointers", "offsets", "increasing", "ancestors")


def with_seen_domains(op: Op, sample: Sample) -> Sample:
    """``sample`` with the domains of its tensors, and what the code says of bounds and of integers
    that are never alike; as it is where inference, or who gave it, said so before."""
    if sample.origin == "inferred" or sample.domains:
        return sample
    known = {item.name: item for item in gather(op)}
    guesses = {
        name: [guess for guess, _ in proposals if isinstance(guess, TensorGuess)]
        for name, proposals in propose(op, list(known.values())).items()
    }
    text = prose(op.defining) if op.defining is not None else ""
    domains = {}
    for name, tensor in sample.named_tensors(op.signature):
        base = name.partition("[")[0]
        dtype = _kind(tensor)
        guessed = next((g.domain for g in guesses.get(base, ()) if g.dtype == dtype), "real")
        said = ""
        if dtype == "float":
            ball = documented_ball(text, base, known)
            said = documented_interval(text, base, known) or ("ball" if ball else "")
        domain = seen_domain(tensor, said or guessed)
        if domain:
            domains[base] = domain
    names = [name for name, _ in sample.named_tensors(op.signature)]
    return replace(
        sample,
        domains=domains,
        bounds=tuple(_bounds(known.values(), names)),
        unlike=tuple(
            (names.index(n), e.unlike) for n, e in known.items() if n in names and e.unlike
        ),
    )


def _kind(tensor: torch.Tensor) -> str:
    if tensor.dtype == torch.bool:
        return "bool"
    if tensor.is_complex():
        return "complex"
    return "float" if tensor.is_floating_point() else "int"


def seen_domain(tensor: torch.Tensor, guessed: str = "real") -> str:
    """The domain of a tensor in words; empty where it can't be told from its values.

    Args:
        tensor: given values.
        guessed: what its name and its documentation suggest.
    """
    value = tensor.detach()
    kind = _kind(value)
    if kind == "int":
        return _of_integers(value, guessed)
    if guessed == "corners" and not are_boxes(value):
        guessed = "real"
    if kind != "float" or value.layout != torch.strided or value.numel() < 2:
        return ""
    if guessed != "real" or not bool(value.isfinite().all()) or is_structured(value):
        return _guessed_and_seen(value, guessed) if guessed != "real" else ""
    return _by_signs(value)


def _by_signs(value: torch.Tensor) -> str:
    if bool((value < 0).any() & (value > 0).any()):
        return DOMAINS["real"]
    if bool((value > 0).all()):
        return DOMAINS["unit" if bool((value < 1).all()) else "positive"]
    return DOMAINS["negative"] if bool((value < 0).all()) else ""


def _guessed_and_seen(value: torch.Tensor, guessed: str) -> str:
    """The guessed domain, if values may be taken from all of it and these are."""
    fits = {
        "positive": bool((value > 0).all()),
        "negative": bool((value < 0).all()),
        "unit": bool(((value > 0) & (value < 1)).all()),
    }
    if guessed == "ball" and not is_in_ball(value):
        return ""
    if fits.get(guessed, False):
        return DOMAINS[guessed]
    return {**DOMAINS, **CONFINED}.get(guessed, guessed) if guessed not in fits else ""


def are_boxes(value: torch.Tensor) -> bool:
    """Whether all rows are boxes: a lower corner and an upper one, behind an odd column."""
    if value.dim() < 1 or value.shape[-1] < 2:
        return False
    half = value.shape[-1] // 2
    low, high = value.detach()[..., -2 * half :].split(half, -1)
    return bool((low < high).all())


def is_in_ball(value: torch.Tensor) -> bool:
    """Whether vectors along the last axis are shorter than one."""
    return value.dim() > 0 and bool((value.detach().norm(dim=-1) < 1.0).all())


def is_structured(value: torch.Tensor) -> bool:
    """Whether floating values obey something that others would not: whole numbers, an order, rows
    that sum to one or have unit length, a special matrix."""
    if bool((value == value.round()).all()):
        return True
    wide = value.dim() > 0 and value.shape[-1] > 1
    if wide and value.shape[-1] >= FEWEST_ORDERED and bool((value.diff(dim=-1) > 0).all()):
        return True
    for axis in range(value.dim()) if wide else ():
        for total in (value.sum(axis), value.exp().sum(axis), value.square().sum(axis)):
            if value.shape[axis] > 1 and bool(((total - 1).abs() < CLOSE).all()):
                return True
    if value.dim() < 2 or value.shape[-1] != value.shape[-2]:
        return False
    mirrored = value.transpose(-1, -2)
    alike = (value - mirrored, value + mirrored, value.tril(-1), value.triu(1))
    return any(bool((part.abs() < CLOSE).all()) for part in alike)


def _of_integers(value: torch.Tensor, guessed: str) -> str:
    if guessed in _CONFINED_INTEGERS or "inverse" in guessed:
        return guessed
    if value.dim() == 0 or value.numel() < 2:
        return ""
    return _order_of(value) or "indices"


def _order_of(value: torch.Tensor) -> str:
    """The order of integers, in words; empty for none."""
    ordered = value.sort(-1).values
    counted = torch.arange(value.shape[-1], device=value.device)
    several = value.shape[-1] >= FEWEST_ORDERED
    if value.dim() == 1 and several and 0 <= int(value.max()) < len(value):
        # Of a tree or a river: what is walked in another order, or in a circle, means something
        # else. The last one has none after it, and the first one none before it: they are below 0.
        if bool(((value > counted) | (value < 0)).all()):
            return "positions that come later"
        if bool((value < counted).all()):
            return "positions that come before"
    if value.shape[-1] > 1 and bool((value.diff(dim=-1) >= 0).all()):
        return "integers in an order"
    if several and bool((ordered == counted).all()):
        return "a permutation along the last axis"
    return ""


def _bounds(known: Iterable[Evidence], names: list[str]) -> Iterator[Bound]:
    """The bounds that the code tells, of tensors by their position."""
    for item in known:
        for bound in item.bounds:
            sides = (bound.less, bound.more)
            if all(side.of is None or side.of in names for side in sides):
                less, more = (
                    side if side.of is None else replace(side, of=names.index(str(side.of)))
                    for side in sides
                )
                yield Bound(less, more, bound.strict)
