"""Values of the tensors of a plan: spread out, away from zero and from each other.

Values are quantiles of a distribution in shuffled order with a little jitter, so that no two are
closer than a share of their spacing: random kinks (ties, zeros) do not occur.
"""

from __future__ import annotations

from typing import Any

import torch

from gradlint.inputs._plan import GroupGuess, Guess, Omitted, Plan, TensorGuess

#: Share of the spacing between neighbouring values by which each is moved (heuristic).
_JITTER = 0.3
#: Distance kept from zero, in units of the standard deviation (heuristic).
_GAP = 0.12


class Built:
    """Arguments made from a plan, and which parameter each tensor came from."""

    def __init__(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        self.args = args
        self.kwargs = kwargs


def build(plan: Plan, seed: int, keywords: frozenset[str] = frozenset()) -> Built:
    """Arguments for ``plan``; ``keywords`` are the parameters passed by name.

    Positional parameters behind an omitted one are passed by name too.
    """
    generator = torch.Generator().manual_seed(seed)
    sizes = plan.sizes()
    made: dict[str, torch.Tensor] = {}
    positional: list[Any] = []
    named: dict[str, Any] = {}
    omitted = False
    for name, guess in zip(plan.names, plan.guesses, strict=True):
        if isinstance(guess, Omitted):
            omitted = True
            continue
        value = _make(name, guess, plan, sizes, generator, made)
        if isinstance(guess, GroupGuess) and guess.splice:
            positional.extend(value)
        elif name in keywords or omitted:
            named[name] = value
        else:
            positional.append(value)
    return Built(tuple(positional), named)


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
        made[name] = tensor
        return tensor
    if isinstance(guess, GroupGuess):
        items = [_make(name, item, plan, sizes, generator, made) for item in guess.items]
        if guess.keys:
            return dict(zip(guess.keys, items, strict=True))
        return guess.container(items)
    if isinstance(guess, Omitted):
        return None
    if guess.kind == "shape-of":
        first = next((tensor for _, tensor in plan.tensors()), None)
        return tuple(sizes[axis] for axis in first.axes) if first is not None else (2, 3)
    # Lists and dicts are copied: an op may write to them.
    return type(guess.value)(guess.value) if type(guess.value) in (list, dict) else guess.value


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
    if guess.dtype == "bool":
        flat = torch.arange(count) % 2 == 0
        if count > 2:
            flat = flat[torch.randperm(count, generator=generator)]
        return flat.reshape(shape)
    if guess.dtype == "int":
        return _integers(guess, shape, count, sizes, generator, made)
    dtype = getattr(torch, plan.working)
    values = spread(guess.domain, shape, count, generator)
    if guess.dtype == "complex":
        values = torch.complex(values, spread("real", shape, count, generator))
        dtype = torch.complex128 if plan.working == "float64" else torch.complex64
    return values.to(dtype).requires_grad_(guess.grad)


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
        return spread("real", shape, count, generator).argsort(dim=-1)
    if guess.domain == "offsets" and len(shape) == 1:
        return torch.arange(shape[0])
    if guess.domain == "sizes":
        return torch.full(shape, guess.high or 2)
    high = guess.high or min(sizes.values(), default=3)
    order = torch.randperm(count, generator=generator) if count else torch.zeros(0).long()
    return (order % max(high, 1)).reshape(shape)


def spread(domain: str, shape: list[int], count: int, generator: torch.Generator) -> torch.Tensor:
    """``count`` float64 values of ``domain`` in the given shape, none near another."""
    if domain == "spd" and len(shape) >= 2 and shape[-1] == shape[-2]:
        factor = spread("real", shape, count, generator)
        eye = torch.eye(shape[-1], dtype=torch.float64)
        return 0.3 * factor @ factor.mT + (1 + 0.3 * torch.arange(shape[-1])) * eye
    if domain == "tril" and len(shape) >= 2 and shape[-1] == shape[-2]:
        factor = spread("real", shape, count, generator)
        return 0.5 * factor.tril(-1) + torch.diag_embed(
            spread("positive", shape[:-1], count // max(shape[-1], 1), generator) + 0.4
        )
    if domain == "nsd":
        return -spread("spd", shape, count, generator)
    positions = torch.arange(count, dtype=torch.float64) + 0.5
    jitter = torch.rand(count, generator=generator, dtype=torch.float64) - 0.5
    level = (positions + _JITTER * jitter) / max(count, 1)
    if count == 1:
        # A lone value at the median would be zero.
        level = 0.72 + 0.1 * jitter
    level = level[torch.randperm(count, generator=generator)].reshape(shape)
    if domain in ("real", "rows", "lengths", "ordered"):
        values = torch.special.ndtri(level)
        values = values + _GAP * torch.where(values < 0, -1.0, 1.0)
        if domain == "rows" and shape:
            return values.softmax(-1)
        if domain == "lengths" and shape:
            return values / values.norm(dim=-1, keepdim=True)
        return values.sort(-1).values if domain == "ordered" and shape else values
    if domain == "unit":
        return 0.1 + 0.8 * level
    if domain == "small":
        values = 1.6 * level - 0.8
        return values + torch.where(values < 0, -0.05, 0.05)
    if domain == "above":
        return 1.2 + 2 * level
    if domain == "negative":
        return -0.3 - 1.7 * level
    if domain == "offset":
        # About a half: neither at nor beyond the limits that thresholds and scales have.
        return 0.35 + 0.5 * level
    return 0.3 + 1.7 * level
