"""Calls that were kept, as samples; and a few that represent all."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch

from gradlint.model.sample import Sample
from gradlint.ops.bare import unpacked
from gradlint.recorded.read import leaves, read_body, read_header
from gradlint.recorded.written import block_of

#: Samples of an operator, at most (heuristic: a check of each takes seconds).
MOST_SAMPLES = 6
#: Different integers at one place from which on they are no options of the operator's.
MOST_OPTIONS = 4

#: Kind of an argument without tensors → what makes it from what the hook wrote.
_LEAVES: dict[str, Callable[[Any], Any]] = {
    "tensor": int,
    "plain": lambda value: value,
    "float": float.fromhex,
    "complex": lambda parts: complex(*map(float.fromhex, parts)),
    "dtype": lambda name: getattr(torch, name),
    "device": lambda name: torch.device("cpu"),
}


@dataclass
class Call:
    """One call.

    Args:
        number: which call of its process it was.
        args, kwargs: arguments as the hook wrote them, pairs of a kind and what it is.
        tensors: what is known of each tensor.
        values: the elements that were kept of each; None where none were.
        context: grad mode, inference mode, autocast.
        more: positional arguments that were left out.
        constructor: how the module was made that was called, pairs of a name and a value as JSON;
            None where that is not known, or it is no module.
    """

    number: int
    args: list[Any]
    kwargs: dict[str, Any]
    tensors: list[dict[str, Any]]
    values: list[torch.Tensor | None]
    context: dict[str, Any]
    more: int = 0
    constructor: str | None = None

    @property
    def objects(self) -> list[str]:
        """The objects among the arguments that could not be kept."""
        values = [*self.args, *self.kwargs.values()]
        return [leaf[1] for value in values for leaf in leaves(value) if leaf[0] == "object"]

    @property
    def cut(self) -> bool:
        """Whether arguments were left out."""
        return self.more > 0 or any(
            part[2] > 0 for value in (*self.args, *self.kwargs.values()) for part in _groups(value)
        )

    @property
    def elements(self) -> int:
        """Of all tensors together."""
        return sum(math.prod(entry["shape"]) for entry in self.tensors)


@dataclass
class Cluster:
    """Calls that differ in sizes and numbers only.

    Args:
        calls: those of this kind.
        requires: position of a tensor → whether it required grad in one of them.
    """

    calls: list[Call] = field(default_factory=list)

    def requires_grad(self, position: int) -> bool:
        """Whether the tensor at ``position`` required grad in one of the calls."""
        return any(call.tensors[position]["requires_grad"] for call in self.calls)

    @property
    def with_grad(self) -> bool:
        """Whether one of the calls was made to be differentiated."""
        return any(call.context.get("grad") and _any_grad(call) for call in self.calls)


def read_calls(files: Sequence[str]) -> list[Call]:
    """The calls in ``files``; what is none is left out."""
    found = []
    for path in files:
        header = read_header(path)
        if header is None:
            continue
        try:
            arrays = unpacked(header, read_body(path))
            tensors = header["tensors"]
            values = [arrays[entry["array"]] if "array" in entry else None for entry in tensors]
            found.append(
                Call(
                    int(header["call"]),
                    list(header["args"]),
                    dict(header["kwargs"]),
                    tensors,
                    values,
                    header.get("context", {}),
                    int(header.get("more", 0)),
                    header.get("constructor"),
                )
            )
        except (ValueError, KeyError, IndexError, TypeError):
            continue
    return found


def clusters(calls: Sequence[Call]) -> list[Cluster]:
    """``calls`` by kind, those that occur most first: by options, by which arguments are tensors,
    by their numbers of axes, and by which axes have size 1."""
    seen: dict[tuple[Any, ...], set[int]] = {}
    for call in calls:
        for place, number in _integers(call):
            seen.setdefault(place, set()).add(number)
    options = {place for place, numbers in seen.items() if len(numbers) <= MOST_OPTIONS}
    found: dict[Any, Cluster] = {}
    for call in calls:
        found.setdefault(_kind(call, options), Cluster()).calls.append(call)
    return sorted(found.values(), key=lambda cluster: -len(cluster.calls))


def representative(found: Sequence[Cluster]) -> list[Cluster]:
    """A few of the clusters, so that everything that occurs in one occurs in one of these: those
    that were differentiated first."""
    chosen: list[Cluster] = []
    known: set[Any] = set()
    for cluster in sorted(found, key=lambda cluster: not cluster.with_grad):
        features = set(_features(cluster.calls[0]))
        if features - known or not chosen:
            chosen.append(cluster)
            known |= features
        if len(chosen) == MOST_SAMPLES:
            break
    return chosen


def examples(cluster: Cluster) -> list[Call]:
    """The calls of a cluster, the most telling first: made to be differentiated, complete, with no
    axis that is empty, and small."""

    def rank(call: Call) -> tuple[Any, ...]:
        empty = any(0 in entry["shape"] for entry in call.tensors)
        unread = sum(value is None for value in call.values)
        return call.cut, empty, unread, not _any_grad(call), call.elements

    return sorted(cluster.calls, key=rank)


def as_sample(call: Call, cluster: Cluster, seed: int) -> Sample:
    """A call as a sample. Of a tensor that was not kept whole, other axes of the same size are cut
    too, and integers that point into them point into what is left.

    Raises:
        ValueError: an argument could not be kept.
    """
    generator = torch.Generator().manual_seed(seed)
    cuts = _cuts(call)
    made: list[torch.Tensor] = []
    for position, (entry, value) in enumerate(zip(call.tensors, call.values, strict=True)):
        shape = [cuts.get(size, size) for size in entry["shape"]]
        if value is None:
            value = _drawn(entry, shape, generator)
        for axis, size in enumerate(shape):
            value = value.narrow(axis, 0, min(size, value.shape[axis]))
        value = _pointing_into(value, entry, cuts)
        if entry.get("layout") == "sparse_coo":
            value = value.to_sparse()
        elif entry.get("layout") == "sparse_csr":
            value = value.to_sparse_csr()
        if value.is_floating_point() or value.is_complex():
            value = value.requires_grad_(cluster.requires_grad(position))
        made.append(value)
    args = tuple(value_of(item, made) for item in call.args)
    kwargs = {name: value_of(item, made) for name, item in call.kwargs.items()}
    return Sample(f"call {call.number}", "recorded", args, kwargs)


def value_of(item: Any, tensors: Sequence[torch.Tensor] = ()) -> Any:
    """An argument from what the hook wrote.

    Raises:
        ValueError: it could not be kept.
    """
    kind, value = item[0], item[1]
    if kind in ("list", "tuple"):
        parts = [value_of(part, tensors) for part in value]
        return parts if kind == "list" else tuple(parts)
    if kind == "dict":
        return {key: value_of(part, tensors) for key, part in value}
    if kind not in _LEAVES or (kind == "tensor" and value >= len(tensors)):
        raise ValueError(f"{'a tensor' if kind == 'tensor' else value} can't be kept")
    return tensors[value] if kind == "tensor" else _LEAVES[kind](value)


def _cuts(call: Call) -> dict[int, int]:
    """Size of axes that are too long to be kept → size of what was kept of them."""
    found: dict[int, int] = {}
    for entry in call.tensors:
        for size, kept in zip(entry["shape"], entry.get("block", entry["shape"]), strict=True):
            if kept < size:
                found[size] = min(kept, found.get(size, kept))
    return found


def _drawn(entry: dict[str, Any], shape: Sequence[int], generator: torch.Generator) -> torch.Tensor:
    """Values for a tensor of which none were kept."""
    shape = block_of(shape)
    dtype = getattr(torch, entry["dtype"])
    if dtype.is_floating_point or dtype.is_complex:
        return torch.randn(shape, generator=generator, dtype=torch.float64).to(dtype)
    return torch.zeros(shape, dtype=dtype)


def _pointing_into(
    value: torch.Tensor, entry: dict[str, Any], cuts: dict[int, int]
) -> torch.Tensor:
    """Integers that may point into axes that were cut, as integers that point into the rest."""
    if value.is_floating_point() or value.is_complex() or value.dtype == torch.bool:
        return value.clone()
    if not value.numel():
        return value
    top = int(entry["range"][1]) if "range" in entry else int(value.max())
    for size, kept in sorted(cuts.items()):
        if kept <= top < size:
            return value.remainder(kept)
    return value.clone()


# -- What tells calls apart -----------------------------------------------------------------------


def _kind(call: Call, options: set[tuple[Any, ...]]) -> tuple[Any, ...]:
    parts: list[Any] = []
    for place, leaf in _places(call):
        kind, value = leaf[0], leaf[1]
        if kind == "tensor":
            entry = call.tensors[value]
            ones = tuple(size == 1 for size in entry["shape"])
            parts.append((place, _dtype_kind(entry["dtype"]), ones, entry.get("layout")))
        elif kind in ("plain", "dtype") and (not _is_integer(leaf) or place in options):
            parts.append((place, kind, value))
        else:
            parts.append((place, kind))
    return tuple(parts)


def _features(call: Call) -> Iterator[tuple[Any, ...]]:
    """What occurs in a call, each for itself."""
    yield "arguments", len(call.args), *call.kwargs
    for place, leaf in _places(call):
        kind, value = leaf[0], leaf[1]
        if kind == "tensor":
            entry = call.tensors[value]
            yield place, "rank", len(entry["shape"]), _dtype_kind(entry["dtype"])
            yield place, "ones", any(size == 1 for size in entry["shape"])
        elif kind in ("plain", "dtype"):
            yield place, kind, value
        else:
            yield place, kind


def _places(call: Call) -> Iterator[tuple[tuple[Any, ...], list[Any]]]:
    """The leaves of a call, each with its place."""

    def walk(place: tuple[Any, ...], value: Any) -> Iterator[tuple[tuple[Any, ...], list[Any]]]:
        kind = value[0]
        if kind in ("list", "tuple"):
            for index, part in enumerate(value[1]):
                yield from walk((*place, index), part)
        elif kind == "dict":
            for key, part in value[1]:
                yield from walk((*place, key), part)
        else:
            yield place, value

    for index, value in enumerate(call.args):
        yield from walk((index,), value)
    for name, value in call.kwargs.items():
        yield from walk((name,), value)


def _integers(call: Call) -> Iterator[tuple[tuple[Any, ...], int]]:
    for place, leaf in _places(call):
        if _is_integer(leaf):
            yield place, leaf[1]


def _is_integer(leaf: list[Any]) -> bool:
    return leaf[0] == "plain" and type(leaf[1]) is int


def _dtype_kind(name: str) -> str:
    dtype = getattr(torch, name)
    return "complex" if dtype.is_complex else "float" if dtype.is_floating_point else name


def _any_grad(call: Call) -> bool:
    return any(entry["requires_grad"] for entry in call.tensors)


def _groups(value: Any) -> Iterator[Any]:
    if value[0] in ("list", "tuple", "dict"):
        yield value
        for part in value[1]:
            yield from _groups(part[1] if value[0] == "dict" else part)
