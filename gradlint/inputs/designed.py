"""Further samples, designed to show faults that the first one hides.

Each differs from the first in one thing, or in a few that are independent: an argument away from
its default, indices that repeat, an operand that is broadcast, values on the other side of a
threshold. They are only made here; whether forward takes them is found by calling it.
"""

from __future__ import annotations

import copy
import enum
import inspect
import itertools
import math
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import torch

from gradlint.inputs import _names
from gradlint.inputs._gather import gather
from gradlint.inputs.documentation import (
    Range,
    documented_from_one,
    documented_from_zero,
    documented_range,
    prose,
)
from gradlint.inputs.domains import CONFINED, DOMAINS
from gradlint.inputs.resized import resized, tensors_of, tied_axes
from gradlint.model.op import Op
from gradlint.model.sample import Sample, SampleKind, map_tensors, positional_names
from gradlint.targets.compared import compared_strings
from gradlint.targets.signature import signature_of

#: Values that one argument is given, at most, and arguments that are moved (heuristic: a value
#: that is not the default shows most faults; a second one those of a constant that happens to fit).
MOST_VALUES, MOST_ARGUMENTS = 2, 8

#: Names that one argument is given, at most: each stands for code of its own.
MOST_NAMES = 4

#: Rows of several arguments that are made for the sake of pairs that none of the usual ones has
#: (heuristic: five arguments with two values each have 40 pairs, which take about eight rows).
MOST_ROWS = 12

#: Samples with an optional argument given and another one moved (heuristic: a weight and the two
#: other reductions of a loss, and as many again).
MOST_OPTIONALS = 5

#: Strings of which an op that knows one often knows the others.
_FAMILIES = (("mean", "sum", "none"), ("max", "min", "sum", "mean"), ("zeros", "border", "reflect"))

#: A number up to this size that is not zero is an epsilon: it is changed to :data:`LARGE_EPSILON`,
#: at which its share of a result is plain (heuristic).
EPSILON, LARGE_EPSILON = 1e-2, 0.1

#: Factor by which a number of a constructor is changed where nothing else suggests a value.
ELSEWHERE = 1.7

#: Operands, and axes of each, that are broadcast one at a time.
MOST_OPERANDS, MOST_AXES = 3, 2

#: Size of an axis that one operand has more than the others (odd, and not the first size of any
#: inferred sample).
EXTRA_AXIS = 2

#: Share of the distance to the next larger number by which numbers are moved without a change of
#: their order.
TOWARDS_NEXT = 0.3

#: Members of a tuple of indices, at most: the four atoms of a torsion.
MOST_MEMBERS = 4

#: Factors of values (heuristic: exp(30·x) is far out on its flat sides, but finite).
LARGE, SMALL = 30.0, 0.03

#: Factors by which values are moved where forward compares something with a threshold and all
#: elements are on one side: far enough that sums and products pass one of the usual size
#: (heuristic).
FARTHER = (4.0, -10.0)

#: Values do not reach a limit that is more than this many times as large as the largest of them.
#: They are then made to exceed it by this factor, unless it is larger than this (heuristic: limits
#: of activations and norms are between 1 and 100).
REACHED, BEYOND_LIMIT, LARGEST_LIMIT = 2.0, 1.5, 1e3

#: Distances from a threshold, relative to its size or to one: on both sides of it, at values that
#: are all different.
NEAREST, FARTHEST = 0.1, 0.9

#: Share of its size by which values keep clear of every threshold, of its mirror image and, where
#: they may have any sign, of zero: at −0.1 a magnitude that is compared with 0.1 is at a kink.
CLEAR = 0.02

#: Domains, in words, whose values may be changed: all of them, or without a change of sign.
#: In the words of domains whose values are special along the last axis: another one is no choice.
_ALONG_LAST = ("last axis", "inverse", "rows")

#: Domain, in words → the bounds that values keep where they are put on both sides of thresholds.
_BOUNDS = {
    "all reals": (-math.inf, math.inf),
    "positive": (0.0, math.inf),
    "between 0 and 1": (0.0, 1.0),
}

_ANY_SIGN, _SAME_SIGN = ("all reals",), ("all reals", "positive", "negative")


@dataclass
class Designed:
    """A further sample.

    Args:
        sample: its ``label`` says in what it differs from the first one, in words that complete
            a sentence: "with stride=2", "where `index` repeats".
        moved: argument → value, where arguments were moved away from those of the first sample.
        as_if: for an operand that is broadcast, the sample with that operand expanded: forward
            returns the same for both if it broadcasts at all.
        alternatives: the same at other sizes, tried in turn where forward refuses ``sample``.
        op: another form of the op; None for the same.
        only_if_seen: whether there is something to judge only where outputs differ from those of
            the first sample.
        must_run: whether backward has to run where forward does.
    """

    sample: Sample
    moved: dict[str, Any]
    as_if: Sample | None = None
    alternatives: Sequence[Sample] = ()
    op: Op | None = None
    only_if_seen: bool = False
    must_run: bool = False


# Arguments away from their defaults.


def other_arguments(op: Op, sample: Sample, seed: int) -> Iterator[Designed]:
    """``sample`` with one argument moved, for each of its arguments that is no tensor."""
    for name, values in _movable(op, sample).items():
        for value in values:
            yield _with(op, sample, {name: value}, seed)


#: An argument's name and its value in one row, and what forward takes: argument → values.
_Row = dict[str, Any]
Taken = Mapping[str, Sequence[Any]]


def several_arguments(
    op: Op, sample: Sample, taken: Taken, seed: int, refused: Collection[str] = ()
) -> Iterator[Designed]:
    """``sample`` with several arguments moved together, until each value of each argument has met
    each value of each other one, or :data:`MOST_ROWS` are made.

    Args:
        taken: argument → its values that forward takes.
        refused: labels of the samples that forward refused; whoever calls adds to it meanwhile.
    """
    met: set[_Pair] = set()
    alone = False
    for row in _rows(taken):
        made = _with(op, sample, row, seed)
        yield made
        if made.sample.label not in refused:
            met |= _pairs_in(row)
        elif len(row) > 2:
            alone = True  # which of them do not go together is not known
    for _ in range(MOST_ROWS):
        pair = next((pair for pair in _all_pairs(taken) if not _pairs_in(pair) <= met), None)
        if pair is None:
            return
        row = pair if alone else _with_numbers(pair, taken, met)
        made = _with(op, sample, row, seed)
        yield made
        met |= _pairs_in(pair)
        if made.sample.label not in refused:
            met |= _pairs_in(row)
        else:
            alone = True


def _rows(taken: Taken) -> Iterator[_Row]:
    """All numbers together, then the numbers with each flag and each choice of names, then all
    flags and choices."""
    numbers = {k: v[0] for k, v in taken.items() if v and _is_number(v[0])}
    choices = {k: v for k, v in taken.items() if v and k not in numbers}
    if len(numbers) > 1:
        yield numbers
    for name, values in choices.items():
        if numbers:
            yield {**numbers, name: values[0]}
    if len(choices) > 1:
        yield {k: v[-1] for k, v in choices.items()}


#: Two arguments with a value each; values as text, because a list has no hash.
_Pair = frozenset[tuple[str, str]]


def _pairs_in(row: _Row) -> set[_Pair]:
    shown = [(name, repr(value)) for name, value in row.items()]
    return {frozenset(pair) for pair in itertools.combinations(shown, 2)}


def _all_pairs(taken: Taken) -> list[_Row]:
    """Every two arguments with every value of each; the values that were tried first come first."""
    ranked = []
    for (one, values), (other, others) in itertools.combinations(taken.items(), 2):
        for rank, value in enumerate(values):
            ranked += [(rank + k, {one: value, other: more}) for k, more in enumerate(others)]
    return [pair for _, pair in sorted(ranked, key=lambda item: item[0])]


def _with_numbers(pair: _Row, taken: Taken, met: Collection[_Pair]) -> _Row:
    """``pair`` and the numbers that meet something new beside it. A third flag or choice stays at
    its default: one often switches off what another one chooses."""
    row = dict(pair)
    for name, values in taken.items():
        for value in values if name not in row else ():
            added = {**row, name: value}
            if _is_number(value) and not _pairs_in(added) - _pairs_in(row) <= set(met):
                row = added
                break
    return row


def other_optionals(
    op: Op, samples: Sequence[Sample], taken: Taken, seed: int
) -> Iterator[Designed]:
    """Each of ``samples``, in which an optional argument is given or left out, with another
    argument moved to each value that forward takes; :data:`MOST_OPTIONALS` at most."""
    most = max((len(values) for values in taken.values()), default=0)
    moves = [(name, v[rank]) for rank in range(most) for name, v in taken.items() if rank < len(v)]
    pairs = [(there, *move) for move in moves for there in samples if move[0] not in there.moved]
    for there, name, value in pairs[:MOST_OPTIONALS]:
        made = _with(op, there, {name: value}, seed)
        for sample in (made.sample, *made.alternatives):
            sample.label = f"with {there.label}, {sample.label.removeprefix('with ')}"
            sample.moved = (*there.moved, name)
        yield made


def _with(op: Op, sample: Sample, moved: dict[str, Any], seed: int) -> Designed:
    label = "with " + ", ".join(f"{name}={_shown(value)}" for name, value in moved.items())

    def apply(base: Sample) -> Sample:
        return replace(with_arguments(op, base, moved), label=label, kind="same")

    # Windows smaller than the image, and even sizes, as groups need them.
    sizes: list[Sample] = []
    if any(type(value) in (int, tuple, list) for value in moved.values()):
        sizes = [apply(other) for other in _other_sizes(sample, seed)]
    return Designed(apply(sample), moved, alternatives=sizes)


def _shown(value: Any) -> str:
    return str(value) if isinstance(value, enum.Enum) else repr(value)


def _other_sizes(sample: Sample, seed: int) -> Iterator[Sample]:
    """``sample`` with a longer last axis of its largest tensor, with all sizes doubled, with sizes
    that tensors share doubled in the first of them only, and with the last axis longer alone."""
    groups = tied_axes(sample)
    tensors = tensors_of(sample)
    if not groups or not tensors:
        return
    largest = max(range(len(tensors)), key=lambda number: tensors[number].dim())
    last = (largest, tensors[largest].dim() - 1)
    for change in (
        {axis: size + 5 for size, axes in groups.items() if last in axes for axis in axes},
        {axis: 2 * size for size, axes in groups.items() for axis in axes},
        # Groups of channels: a filter sees only those of its own group.
        {axis: 2 * size for size, axes in groups.items() for axis in axes if axis[0] == axes[0][0]},
        # A window as long as the axis that it slides over is equal to it by chance.
        {last: tensors[last[0]].shape[-1] + 5},
    ):
        found = resized(sample, change, seed=seed) if change else None
        if found is not None:
            yield found


def is_written_for(moved: Mapping[str, Any]) -> bool:
    """Whether forward takes the values ``moved`` on purpose. Some numbers it takes by accident;
    flags and names it was written for, and what a window or an axis is given in PyTorch's own
    operators."""
    choices = (bool, str, enum.Enum)
    return bool(moved) and all(
        isinstance(value, choices)
        or (type(value) is int and (_names.of_window(name) or _names.is_axis(name)))
        for name, value in moved.items()
    )


def with_arguments(op: Op, sample: Sample, moved: Mapping[str, Any]) -> Sample:
    """``sample`` with other values of arguments, by name.

    Defaults between them are written out: ``torch.autograd.Function.apply`` takes arguments by name
    only where all before them are given.
    """
    names = positional_names(op.signature, len(sample.args))
    args = [moved.get(name, value) for name, value in zip(names, sample.args, strict=True)]
    kwargs = {**sample.kwargs, **{k: v for k, v in moved.items() if k not in names}}
    following = list(op.signature.parameters.values())[len(args) :] if op.signature else []
    for parameter in following:
        plain = parameter.kind is inspect.Parameter.POSITIONAL_OR_KEYWORD
        value = kwargs.get(parameter.name, parameter.default)
        if not plain or value is inspect.Parameter.empty or not kwargs:
            break
        args.append(value)
        kwargs.pop(parameter.name, None)
    return replace(sample, args=tuple(args), kwargs=kwargs, moved=tuple(moved))


def _movable(op: Op, sample: Sample) -> dict[str, list[Any]]:
    """Argument → other values to try, those known to the code first."""
    if op.signature is None:
        return {}
    names = positional_names(op.signature, len(sample.args))
    given = {**dict(zip(names, sample.args, strict=True)), **sample.kwargs}
    rank = max((tensor.dim() for tensor in tensors_of(sample)), default=0)
    known = {item.name: item for item in gather(op)}
    said = prose(op.defining) if op.defining is not None else ""
    along_last = any(word in d for d in sample.domains.values() for word in _ALONG_LAST)
    found = {}
    for parameter in op.signature.parameters.values():
        evidence = known.get(parameter.name)
        now = given.get(parameter.name, parameter.default)
        variable = parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD)
        if variable or evidence is None or now is inspect.Parameter.empty:
            continue
        if _names.stops_gradients(parameter.name) or (
            along_last and _names.is_axis(parameter.name)
        ):
            continue
        if sample.origin != "inferred" and parameter.name in given:
            continue  # who gave it may have had reasons
        kind = evidence.ordered_kinds()[0][0] if now is None else ""
        candidates = _values(parameter.name, now, evidence.values, kind, rank)
        others = _within(documented_range(said, parameter.name, known), now, candidates)
        most = MOST_NAMES if isinstance(now, (str, enum.Enum)) else MOST_VALUES
        others = _distinct(now, others)[:most]
        if type(now) is int and parameter.default is inspect.Parameter.empty and others:
            others += _distinct(now, [_beyond_sizes(sample)]) if now > 0 else []
        if others:
            found[parameter.name] = others
        if len(found) >= MOST_ARGUMENTS:
            break
    return found


def _within(allowed: Range | None, now: Any, candidates: list[Any]) -> list[Any]:
    """Those of ``candidates`` that the documentation allows, or one that it does."""
    if allowed is None or now not in allowed:
        return candidates
    found = [one for one in candidates if one in allowed and repr(one) != repr(now)]
    if not found and type(now) is float and allowed.inside(now) in allowed:
        found = [allowed.inside(now)]
    return found


def _beyond_sizes(sample: Sample) -> int:
    """An integer above all sizes: as the length of an output it makes elements repeat."""
    return 2 * max((max(t.shape, default=1) for t in tensors_of(sample)), default=1) + 1


def _distinct(now: Any, candidates: Sequence[Any]) -> list[Any]:
    seen = {repr(now)}
    return [one for one in candidates if not (repr(one) in seen or seen.add(repr(one)))]  # type: ignore[func-returns-value]


def _values(name: str, now: Any, known: Sequence[Any], kind: str, rank: int) -> list[Any]:
    """Values to try for an argument that is ``now``; ``known``: those the code compares it with."""
    alike = [value for value in known if type(value) is type(now)]
    found: list[Any] = []
    match now:
        case bool():
            found = [not now]
        case enum.Enum():
            found = [*alike, *type(now)]
        case int() if _names.is_axis(name):
            found = _axes(now, rank)
        case int():
            found = [*alike, *_integers(name, now)]
        case float() if _names.is_tolerance(name):
            pass  # what is solved less exactly has a less exact gradient
        case float():
            found = [*alike, *_floats(now)]
        case str():
            family = next((words for words in _FAMILIES if now in words), ())
            found = [*alike, *family]
        case tuple() | list() if now and all(type(part) is int for part in now):
            uneven = [part + (k == 0) for k, part in enumerate(now)]
            found = [type(now)(part + 1 for part in now), type(now)(uneven)]
        case None:
            found = _in_place_of_none(name, known, kind, rank)
    return found


def _axes(now: int, rank: int) -> list[int]:
    """Another axis, counted from the end where ``now`` is not, and the same one counted so."""
    if not -rank <= now < rank:
        return [0, -1]
    other = (now + 1) % rank
    same = now - rank if now >= 0 else now + rank
    return [other - rank if now >= 0 else other, same] if rank > 1 else [same]


def _integers(name: str, now: int) -> list[int]:
    if now < 0:
        return [2, 1]  # a number that stands for nothing, as an ignored label does
    usual = [value for value in _names.ints(name) if value > now][:1]
    return [now + 1, *usual, max(now - 1, 1)]


def _floats(now: float) -> list[float]:
    if not math.isfinite(now):
        return [0.8]
    if 0 < abs(now) <= EPSILON:
        return [math.copysign(LARGE_EPSILON, now)]
    # Moderate changes of other numbers are judged wherever gradients are (GL401).
    return [3.0 * now + 0.25] if abs(now) <= 1 else []


def _in_place_of_none(name: str, known: Sequence[Any], kind: str, rank: int) -> list[Any]:
    if _names.is_axis(name):
        return [0, -1] if rank else []
    found = [value for value in known if isinstance(value, (str, int, float))]
    if kind == "float":
        found += list(_names.floats(name)[:1])
    elif kind == "int":
        found += list(_names.ints(name)[:1])
    return found


def _is_number(value: Any) -> bool:
    return type(value) in (int, float, tuple, list)


def other_mode(op: Op, sample: Sample) -> Iterator[Designed]:
    """A module in evaluation mode if it is in training mode, and the other way round."""
    if op.module is None:
        return
    try:
        module = copy.deepcopy(op.module).train(not op.module.training)
    except Exception:  # of a module that can't be copied: anything
        return
    label = f"in {'training' if module.training else 'evaluation'} mode"
    yield Designed(replace(sample, label=label), {}, op=replace(op, module=module, call=module))


def other_constructions(op: Op, sample: Sample) -> Iterator[Designed]:
    """``sample`` for the module made with one argument of its constructor away from its value, and
    with the same parameters and buffers. An attribute that is changed later may contradict what the
    constructor made of it, so the module is made anew."""
    module = op.module
    signature = signature_of(type(module)) if module is not None else None
    if module is None or signature is None or hasattr(module, "_orig_mod"):
        return
    said = prose(type(module))
    compared = compared_strings(type(module), list(signature.parameters))
    rank = max((tensor.dim() for tensor in tensors_of(sample)), default=0)
    count = 0
    for parameter in signature.parameters.values():
        name, now = parameter.name, op.constructor.get(parameter.name, parameter.default)
        if count >= MOST_ARGUMENTS or _names.is_tolerance(name) or _names.stops_gradients(name):
            continue
        candidates = (
            _floats_of(name, now)
            if type(now) is float
            else _values(name, now, compared.get(name, ()), "", rank)
            if isinstance(now, (bool, int, str, enum.Enum))
            else []
        )
        allowed = documented_range(said, name, signature.parameters)
        values = _within(allowed, now, _distinct(now, candidates))
        # The same constructor takes several names, and one number is as good as another.
        for value in values[: MOST_NAMES if isinstance(now, (str, enum.Enum)) else 1]:
            made = constructed(module, {**op.constructor, name: value})
            if made is not None:
                count += 1
                label = f"with {name}={_shown(value)} in the constructor"
                there = replace(sample, label=label, kind="same")
                yield Designed(there, {name: value}, op=replace(op, module=made, call=made))


def constructions_with_optionals(op: Op, samples: Sequence[Sample]) -> Iterator[Designed]:
    """Each of ``samples``, in which an optional argument is given or left out, for the module made
    with one other argument of its constructor; :data:`MOST_OPTIONALS` at most."""
    made = [list(other_constructions(op, there)) for there in samples if there.moved]
    ranked = itertools.zip_longest(*made)
    pairs = [
        (there, one)
        for row in ranked
        for there, one in zip((t for t in samples if t.moved), row, strict=True)
        if one is not None
    ]
    for there, one in pairs[:MOST_OPTIONALS]:
        moved = (*there.moved, *one.moved)
        label = f"with {there.label}, {one.sample.label.removeprefix('with ')}"
        yield replace(one, sample=replace(one.sample, label=label, moved=moved))


def _floats_of(name: str, now: float) -> list[float]:
    """Other numbers for a float of a constructor, which is judged nowhere else: between zero and
    one where it is, because it may be a share."""
    if not math.isfinite(now) or 0 < abs(now) <= EPSILON:
        return _floats(now)
    usual = [value for value in _names.floats(name) if value < 1.0 or now > 1.0]
    return [*usual, ELSEWHERE * now]


def constructed(module: torch.nn.Module, values: Mapping[str, Any]) -> torch.nn.Module | None:
    """A module of the class of ``module`` and with its state, made with other arguments; None where
    the constructor refuses these, or makes parameters of other shapes."""
    state = torch.get_rng_state()
    try:
        made = type(module)(**values).train(module.training)
        held = {name: value.dtype for name, value in module.state_dict().items()}
        made.load_state_dict(module.state_dict())
        alike = all(value.dtype == held[name] for name, value in made.state_dict().items())
        grads = [parameter.requires_grad for parameter in module.parameters()]
        alike &= [parameter.requires_grad for parameter in made.parameters()] == grads
    except Exception:  # of the user's constructor: anything
        return None
    finally:
        torch.set_rng_state(state)
    return made if alike else None


# Indices.


def other_indices(
    op: Op, sample: Sample, *, repeat: bool, from_the_end: bool
) -> Iterator[Designed]:
    """``sample`` with other indices.

    Args:
        repeat: whether an index may occur twice.
        from_the_end: whether indices below zero may be tried.
    """
    said = prose(op.defining) if op.defining is not None else ""
    for name, tensor in sample.named_tensors(op.signature):
        if domain_of(sample, name) != "indices" or tensor.numel() < 2:
            continue
        if _names.permutes(name):
            # Each position once, in an order that is not its own inverse.
            if tensor.shape[-1] > 2:
                turned = torch.arange(tensor.shape[-1]).roll(1).expand_as(tensor)
                yield replaced(sample, tensor, turned, f"where `{name}` is another order")
            continue
        if repeat:
            yield from _crowded(sample, name, tensor, _kept_apart(op, sample, tensor))
        least = documented_from_zero(said, name) or documented_from_one(said, name)
        if from_the_end and not least and int(tensor.max()) >= 1 and int(tensor.min()) >= 0:
            values = tensor.reshape(-1)
            mixed = torch.where(values % 2 == 0, values, -1 - (values // 2))
            yield replaced(sample, tensor, mixed, f"where `{name}` has negative indices")


def _crowded(
    sample: Sample, name: str, tensor: torch.Tensor, others: list[torch.Tensor]
) -> Iterator[Designed]:
    """``sample`` with the first and the last index of a tensor only, and with one only; none of
    them becomes equal to that of ``others`` at its place."""
    axis = _axis_of_tuples(tensor)
    if axis is not None:
        # Whole tuples repeat: edges, bonds, triangles.
        count = tensor.shape[1 - axis]
        ends = torch.where(torch.arange(count) % 2 == 0, 0, count - 1).flip(0)
        twice = tensor.index_select(1 - axis, ends)
        yield replaced(
            sample, tensor, twice, f"where `{name}` repeats the first and the last index"
        )
        once = tensor.narrow(1 - axis, count - 1, 1).expand_as(tensor)
        yield replaced(sample, tensor, once, f"where `{name}` is one index only")
        return
    # Rows may index axes of other sizes, as pairs of a row and a column do.
    highest = tensor.amax(-1, keepdim=True)
    clear = torch.ones_like(tensor, dtype=torch.bool)

    def apart(made: torch.Tensor) -> torch.Tensor:
        for other in others:
            clear.logical_and_(made != other)
        return torch.where(clear, made, tensor)

    if int(highest.max()) >= 2:
        even = torch.arange(tensor.shape[-1]) % 2 == 0
        crowded = torch.where(even, 0, highest).flip(-1).expand_as(tensor)
        label = f"where `{name}` repeats the first and the last index"
        yield replaced(sample, tensor, apart(crowded), label)
    single = highest.expand_as(tensor)
    if all(bool((single != other).all()) for other in others):
        yield replaced(sample, tensor, single, f"where `{name}` is one index only")


def _axis_of_tuples(tensor: torch.Tensor) -> int | None:
    """The axis along which a matrix of integers holds tuples whose members are never equal, as the
    corners of triangles are; None where it holds none."""
    if tensor.dim() != 2:
        return None
    for axis in (1, 0):
        ordered = tensor.sort(axis).values
        few = 1 < tensor.shape[axis] <= MOST_MEMBERS < tensor.shape[1 - axis] + 3
        highest = tensor.amax(1 - axis)
        # Members that index one axis reach about as far; a row and a column of a matrix need not.
        # Three and more are unequal in every row for a reason, even where one reaches less far.
        alike = int(highest.max() - highest.min()) <= 1 or tensor.shape[axis] > 2
        if few and alike and bool((ordered.diff(dim=axis) > 0).all()):
            return axis
    return None


def _kept_apart(op: Op, sample: Sample, tensor: torch.Tensor) -> list[torch.Tensor]:
    """Other indices of the same shape that are nowhere equal to ``tensor``: the other ends of
    edges."""
    return [
        other
        for name, other in sample.named_tensors(op.signature)
        if other is not tensor
        and domain_of(sample, name) == "indices"
        and other.shape == tensor.shape
        and bool((other != tensor).all())
    ]


def replaced(
    sample: Sample, chosen: torch.Tensor, flat: torch.Tensor, label: str, kind: SampleKind = "same"
) -> Designed:
    """``sample`` with the elements of one tensor replaced."""
    made = flat.reshape(chosen.shape).to(chosen.dtype).requires_grad_(chosen.requires_grad)
    return Designed(exchanged(sample, {id(chosen): made}, label, kind), {})


def exchanged(
    sample: Sample, exchange: Mapping[int, torch.Tensor], label: str, kind: SampleKind
) -> Sample:
    """``sample`` with some of its tensors, by identity, exchanged for others."""

    def convert(tensor: torch.Tensor) -> torch.Tensor:
        return exchange.get(id(tensor), tensor)

    args, kwargs = map_tensors((sample.args, sample.kwargs), convert)
    return replace(sample, label=label, kind=kind, args=args, kwargs=kwargs)


# Numbers of which only the order counts.


def ranking(op: Op, sample: Sample) -> Iterator[tuple[str, Designed]]:
    """The names of floating tensors that carry no gradient and may count by their order alone, as
    times and scores do, each with ``sample`` with other numbers in the same order."""
    named = [(n, t) for n, t in sample.named_tensors(op.signature) if _may_rank(sample, n, t)]
    for name, tensor in named[:MOST_OPERANDS]:
        ordered, order = tensor.detach().sort(dim=-1)
        nearer_next = ordered[..., :-1] + TOWARDS_NEXT * ordered.diff(dim=-1)
        moved = torch.cat([nearer_next, ordered[..., -1:]], dim=-1)
        flat = torch.empty_like(moved).scatter_(-1, order, moved)
        yield name, replaced(sample, tensor, flat, f"with other `{name}` in the same order")


def _may_rank(sample: Sample, name: str, tensor: torch.Tensor) -> bool:
    plain = domain_of(sample, name) not in CONFINED.values()
    wide = tensor.dim() > 0 and tensor.shape[-1] > 2
    return is_floating(tensor) and not tensor.requires_grad and plain and wide


def with_ties(op: Op, sample: Sample, name: str) -> Iterator[Designed]:
    """``sample`` with numbers of the tensor ``name`` that are equal along its last axis: every two
    neighbours in their order, and all."""
    tensor = dict(sample.named_tensors(op.signature))[name]
    ordered, order = tensor.detach().sort(dim=-1)
    places = torch.arange(tensor.shape[-1], device=tensor.device)
    paired = ordered[..., places - places % 2]
    flat = torch.empty_like(paired).scatter_(-1, order, paired)
    yield replaced(sample, tensor, flat, f"where `{name}` has ties")
    equal = ordered[..., -1:].expand_as(ordered)
    yield replaced(sample, tensor, equal, f"where all of `{name}` are equal")


# Shapes that broadcast.


def broadcast(op: Op, sample: Sample) -> Iterator[Designed]:
    """``sample`` with one operand broadcast: along its first and its last axis, without its first
    axis, and with an axis more than the others have."""
    named = [(n, t) for n, t in sample.named_tensors(op.signature) if is_floating(t)]
    if len(named) < 2:
        return
    for name, tensor in named[:MOST_OPERANDS]:
        domain = domain_of(sample, name)
        if domain in CONFINED.values():
            continue
        ends = dict.fromkeys((tensor.dim() - 1, 0)) if tensor.dim() else ()
        if any(word in domain for word in _ALONG_LAST):
            ends = dict.fromkeys((0,) if tensor.dim() > 1 else ())
        for axis in list(ends)[:MOST_AXES]:
            if tensor.shape[axis] > 1:
                narrow = leaf_like(tensor.narrow(axis, 0, 1), tensor)
                label = f"where `{name}` is broadcast along axis {axis}"
                yield _expanded(sample, tensor, narrow, tensor.shape, label, "broadcast")
        if tensor.dim() and tensor.shape[0] > 1:
            label = f"where `{name}` has an axis less"
            yield _expanded(
                sample, tensor, leaf_like(tensor[0], tensor), tensor.shape, label, "other-rank"
            )
    (first, tensor), *others = named
    along = [word in domain_of(sample, n) for n, _ in others for word in _ALONG_LAST]
    scaled = domain_of(sample, first) in ("", *_SAME_SIGN)
    if (
        scaled
        and not any(along)
        and tensor.dim()
        and all(other.dim() <= tensor.dim() for _, other in others)
    ):
        more = torch.stack([tensor.detach() * (1 - 0.1 * k) for k in range(EXTRA_AXIS)])
        label = f"where `{first}` has an axis more"
        exchange = {id(tensor): leaf_like(more, tensor)}
        sample_there = exchanged(sample, exchange, label, "other-rank")
        whole = {
            id(t): leaf_like(t.detach().expand(EXTRA_AXIS, *_padded(t, tensor.dim())), t)
            for _, t in others
        }
        yield Designed(
            sample_there, {}, as_if=exchanged(sample, {**exchange, **whole}, label, "other-rank")
        )


def _padded(tensor: torch.Tensor, rank: int) -> list[int]:
    return [1] * (rank - tensor.dim()) + list(tensor.shape)


def _expanded(
    sample: Sample,
    tensor: torch.Tensor,
    small: torch.Tensor,
    shape: Sequence[int],
    label: str,
    kind: SampleKind,
) -> Designed:
    whole = leaf_like(small.detach().expand(*shape), tensor)
    return Designed(
        exchanged(sample, {id(tensor): small}, label, kind),
        {},
        as_if=exchanged(sample, {id(tensor): whole}, label, kind),
    )


def leaf_like(value: torch.Tensor, like: torch.Tensor) -> torch.Tensor:
    """A contiguous copy of ``value`` that requires grad where ``like`` does."""
    return value.detach().clone().contiguous().requires_grad_(like.requires_grad)


def is_floating(tensor: torch.Tensor) -> bool:
    """Whether a tensor is strided, of floating numbers that are not complex."""
    return tensor.is_floating_point() and tensor.layout == torch.strided


# Values.


#: Words, kind, the domains that it is for, and the new value of a tensor; None to keep the old one.
_Change = tuple[str, SampleKind, tuple[str, ...], Callable[[torch.Tensor], torch.Tensor | None]]


def _both_signs(tensor: torch.Tensor) -> bool:
    return bool((tensor < 0).any() & (tensor > 0).any())


_CHANGES: tuple[_Change, ...] = (
    (
        "where all values are negative",
        "special",
        _ANY_SIGN,
        lambda t: -t.abs() if _both_signs(t) else None,
    ),
    (
        "where all values are positive",
        "special",
        _ANY_SIGN,
        lambda t: t.abs() if _both_signs(t) else None,
    ),
    (f"where values are {LARGE:g} times as large", "extreme", _SAME_SIGN, lambda t: LARGE * t),
    (f"where values are {SMALL:g} times as large", "extreme", _SAME_SIGN, lambda t: SMALL * t),
)


def other_values(op: Op, sample: Sample) -> Iterator[Designed]:
    """``sample`` with one sign in each tensor that has both, with large and with small values."""
    yield from _changed(op, sample, _CHANGES)


def beyond(op: Op, sample: Sample) -> Iterator[Designed]:
    """``sample`` with larger values, so that what forward computes of them passes thresholds."""
    words = "where values are {:g} times as large"
    yield from _changed(
        op,
        sample,
        [(words.format(k), "same", _ANY_SIGN, partial(torch.mul, other=k)) for k in FARTHER],
    )


def farther_alone(op: Op, sample: Sample) -> Iterator[Designed]:
    """``sample`` with larger values in one tensor, so that it passes others that it is compared
    with: times beyond the last knot, points beyond the end of a segment. What scales with all
    inputs together never does."""
    domains = (*_SAME_SIGN, DOMAINS["ordered"])
    named = [
        (name, tensor)
        for name, tensor in sample.named_tensors(op.signature)
        if is_floating(tensor) and tensor.requires_grad and domain_of(sample, name) in domains
    ]
    for name, tensor in named[:MOST_OPERANDS] if len(list(sample.named_tensors(None))) > 1 else ():
        larger = FARTHER[0] * tensor.detach()
        label = f"where `{name}` is {FARTHER[0]:g} times as large"
        yield replaced(sample, tensor, larger.reshape(-1), label)


def up_to_limits(op: Op, sample: Sample) -> Iterator[Designed]:
    """``sample`` with values that reach each limit which the op holds and never compares with: the
    cap of ``cap * tanh(x / cap)``."""
    largest = max(
        (
            float(tensor.detach().abs().max())
            for name, tensor in sample.named_tensors(op.signature)
            if is_floating(tensor) and tensor.numel() and domain_of(sample, name) in _SAME_SIGN
        ),
        default=0.0,
    )
    for name, limit in _limits(op, sample):
        if 0.0 < REACHED * largest < limit <= LARGEST_LIMIT:
            factor = BEYOND_LIMIT * limit / largest
            label = f"where values reach {name}={limit:g}"
            larger: _Change = (label, "same", _SAME_SIGN, partial(torch.mul, other=factor))
            yield from _changed(op, sample, [larger])


def _limits(op: Op, sample: Sample) -> Iterator[tuple[str, float]]:
    """Numbers among the arguments, the attributes and the buffers whose names say that they bound
    values."""
    names = positional_names(op.signature, len(sample.args)) if op.signature else []
    held: dict[str, Any] = {
        name: parameter.default
        for name, parameter in (op.signature.parameters if op.signature else {}).items()
    }
    held |= {**dict(zip(names, sample.args, strict=True)), **sample.kwargs} if names else {}
    if op.module is not None:
        held |= {**vars(op.module), **dict(op.module.named_buffers())}
    for name, value in held.items():
        if isinstance(value, torch.Tensor) and value.numel() == 1 and not value.requires_grad:
            value = value.item()
        if type(value) in (int, float) and _names.is_limit(name.rpartition(".")[2]):
            yield name, abs(float(value))


def nearer(op: Op, sample: Sample, share: float) -> Iterator[Designed]:
    """``sample`` with values ``share`` times as large, so that what forward computes of them stays
    below a threshold that it passed: a norm below its epsilon."""
    label = f"where values are {share:.2g} times as large"
    smaller: _Change = (label, "same", _SAME_SIGN, partial(torch.mul, other=share))
    yield from _changed(op, sample, [smaller])


def _changed(op: Op, sample: Sample, changes: Sequence[_Change]) -> Iterator[Designed]:
    for label, kind, domains, change in changes:
        exchange = {
            id(tensor): leaf_like(changed, tensor)
            for name, tensor in sample.named_tensors(op.signature)
            if is_floating(tensor) and domain_of(sample, name) in domains
            if (changed := change(tensor.detach())) is not None
        }
        if exchange:
            yield Designed(exchanged(sample, exchange, label, kind), {})


def domain_of(sample: Sample, name: str) -> str:
    """The domain of the tensor ``name``, which may be one of several in an argument."""
    return sample.domains.get(name.partition("[")[0], "")


def around(op: Op, sample: Sample, thresholds: Sequence[float]) -> Iterator[Designed]:
    """``sample`` with elements on both sides of all ``thresholds``, and beyond them."""
    exchange, shown = {}, set()
    for name, tensor in sample.named_tensors(op.signature):
        low, high = _BOUNDS.get(domain_of(sample, name), (0.0, 0.0))
        marks = sorted({mark for mark in thresholds if low < mark < high})
        if is_floating(tensor) and tensor.numel() > 1 and marks:
            exchange[id(tensor)] = leaf_like(_scattered(tensor.detach(), marks, low, high), tensor)
            shown |= set(marks)
    if exchange:
        label = f"where values are on both sides of {', '.join(f'{m:g}' for m in sorted(shown))}"
        if sample.label.startswith("with "):
            label = f"{sample.label}, {label}"
        yield Designed(exchanged(sample, exchange, label, "same"), {})


def _scattered(
    value: torch.Tensor, marks: Sequence[float], low: float, high: float
) -> torch.Tensor:
    """Values between ``low`` and ``high`` that are below, between and above ``marks``, in an order
    like that of ``value``, and not so near to a mark, or to its mirror image, that they are at a
    kink. Where a value may have any sign, none is nearer to zero than a mark that is no larger
    than an epsilon: whether one would be depended on how many there are."""
    count = value.numel()
    share = (torch.arange(count, dtype=torch.float64) + 0.5) / count
    share = NEAREST + (FARTHEST - NEAREST) * share
    mark = torch.tensor(marks, dtype=torch.float64)[torch.arange(count) // 2 % len(marks)]
    size = mark.abs().clamp(min=1.0) if math.isinf(low) else mark - low
    above = size if math.isinf(high) else high - mark
    flat = mark + torch.where(torch.arange(count) % 2 == 0, above, -size) * share
    if math.isinf(low):
        guarded = (mark.abs() <= LARGE_EPSILON) & (flat.abs() <= mark.abs())
        flat = torch.where(guarded, flat - 2.0 * mark.abs(), flat)
        flat = torch.where(flat.abs() < CLEAR**2 * size, CLEAR * size, flat)
    for each in marks:
        near = (flat.abs() - abs(each)).abs() < CLEAR * abs(each)
        flat = torch.where(near, flat * (1.0 + (2.0 if math.isinf(high) else -2.0) * CLEAR), flat)
    order = value.reshape(-1).argsort().argsort()
    return flat[order].reshape(value.shape).to(value.dtype)
