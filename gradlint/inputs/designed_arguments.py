"""Further samples with arguments away from those of the first one, alone and together."""

from __future__ import annotations

import enum
import inspect
import itertools
import math
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from torch import is_tensor

from gradlint.inputs import _names
from gradlint.inputs._evidence import Evidence
from gradlint.inputs._gather import gather
from gradlint.inputs._of_others import is_of_others
from gradlint.inputs._ordered_numbers import keeps_order
from gradlint.inputs.designed import (
    ALONG_LAST,
    ANY_SIGN,
    Designed,
    domain_of,
    exchanged,
    is_floating,
    leaf_like,
)
from gradlint.inputs.documentation import (
    Range,
    documented_range,
    documented_signs,
    documented_words,
    prose,
)
from gradlint.inputs.resized import resized, tensors_of, tied_axes
from gradlint.model.op import Op
from gradlint.model.sample import Sample, positional_names

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

#: An axis is below this (heuristic: operators of users hardly take more than five). A larger
#: ``dim`` is a width.
MOST_AXES = 8

#: Strings of which an op that knows one often knows the others.
_FAMILIES = (("mean", "sum", "none"), ("max", "min", "sum", "mean"), ("zeros", "border", "reflect"))

#: Values of a number that the code asks for by name, such as ``alpha == 0.0``, at most: each has
#: code of its own.
MOST_COMPARED = 4

#: A number up to this size that is not zero is an epsilon: it is changed to :data:`LARGE_EPSILON`,
#: at which its share of a result is plain (heuristic).
EPSILON, LARGE_EPSILON = 1e-2, 0.1

#: Share of the least value that an epsilon bounds, to which the epsilon is moved: it bounds nothing
#: there either, as it does where it is meant to guard against zero.
BELOW_LEAST = 0.5


def other_arguments(
    op: Op, sample: Sample, seed: int, guards: Mapping[float, float] | None = None
) -> Iterator[Designed]:
    """``sample`` with one argument moved, for each of its arguments that is no tensor.

    Args:
        guards: bounds from below that no value reaches at ``sample`` → the least value there.
    """
    for name, values in _movable(op, sample).items():
        for value in values:
            least = (guards or {}).get(_number_at(op, sample, name), math.inf)
            if value == LARGE_EPSILON and value >= least:
                value = BELOW_LEAST * least
            yield with_moved(op, sample, {name: value}, seed)


def _number_at(op: Op, sample: Sample, name: str) -> float:
    """The number that an argument is at ``sample``, by default as well; NaN where it is none."""
    names = positional_names(op.signature, len(sample.args))
    given = {**dict(zip(names, sample.args, strict=True)), **sample.kwargs}
    default = op.signature.parameters[name].default if op.signature is not None else None
    value: Any = given.get(name, default)
    return float(value) if type(value) in (int, float) else math.nan


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
        made = with_moved(op, sample, row, seed)
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
        made = with_moved(op, sample, row, seed)
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
    named = [(name, repr(value)) for name, value in row.items()]
    return {frozenset(pair) for pair in itertools.combinations(named, 2)}


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
        made = with_moved(op, there, {name: value}, seed)
        for sample in (made.sample, *made.alternatives, *filter(None, [made.suiting])):
            base = there.label.removeprefix("with ")
            sample.label = f"with {base}, {sample.label.removeprefix('with ')}"
            sample.moved = (*there.moved, name)
        yield made


def with_moved(op: Op, sample: Sample, moved: dict[str, Any], seed: int) -> Designed:
    """``sample`` with other values of arguments, and the same at positive values and at other sizes
    in case that forward refuses them at these: a fraction as an exponent, a wider window."""
    label = "with " + ", ".join(f"{name}={shown(value)}" for name, value in moved.items())

    def apply(base: Sample) -> Sample:
        return replace(with_arguments(op, base, moved), label=label, kind="same")

    others: list[Sample] = []
    if any(type(value) is float for value in moved.values()):
        others += _where_positive(op, apply(sample))
    # Windows smaller than the image, and even sizes, as groups need them.
    if any(type(value) in (int, tuple, list) for value in moved.values()):
        others += [apply(other) for other in _other_sizes(sample, seed)]
    # A layout, or a flag that says whether a matrix is transposed.
    if all(isinstance(value, (bool, str, enum.Enum)) for value in moved.values()):
        others += [apply(other) for other in _transposed(sample)]
    turned = _turned(op, sample, moved)
    suiting = None if turned is None else apply(turned)
    there = _of_other_triangle(sample) if any(map(_names.tells_triangle, moved)) else sample
    return Designed(apply(there), moved, alternatives=others, suiting=suiting)


def _of_other_triangle(sample: Sample) -> Sample:
    """``sample`` with its triangular matrices transposed: formulas may rely on zeros in the other
    triangle, which forward does not read."""
    exchange = {
        id(tensor): leaf_like(tensor.mT, tensor)
        for tensor in tensors_of(sample)
        if tensor.dim() > 1
        and tensor.shape[-1] == tensor.shape[-2] > 1
        and bool(tensor.tril(-1).any()) != bool(tensor.triu(1).any())
    }
    return exchanged(sample, exchange, sample.label, "same") if exchange else sample


def _transposed(sample: Sample) -> Iterator[Sample]:
    """``sample`` with the last two axes of one tensor exchanged, where their sizes differ."""
    for tensor in tensors_of(sample):
        if tensor.dim() > 1 and tensor.shape[-1] != tensor.shape[-2]:
            exchange = {id(tensor): leaf_like(tensor.mT, tensor)}
            yield exchanged(sample, exchange, sample.label, "same")


def _turned(op: Op, sample: Sample, moved: Mapping[str, Any]) -> Sample | None:
    """``sample`` with two axes exchanged in its tensors with most axes, if an axis is moved from
    one of them to the other: the sizes along it are those that suited before. A size that can't be
    split in halves is sometimes taken by accident, because the second half is broadcast."""
    before = _integers_at(op, sample)
    axes = [(before[name], to) for name, to in moved.items() if _is_axis_of(name, to, before)]
    rank = max((tensor.dim() for tensor in tensors_of(sample)), default=0)
    if len(axes) != 1 or not all(-rank <= axis < rank for axis in axes[0]):
        return None
    exchange = {
        id(tensor): leaf_like(tensor.transpose(*axes[0]), tensor)
        for tensor in tensors_of(sample)
        if tensor.dim() == rank
    }
    one, other = axes[0]
    if all(tensor.shape[one] == tensor.shape[other] for tensor in exchange.values()):
        return None
    return exchanged(sample, exchange, sample.label, "same")


def _is_axis_of(name: str, value: Any, before: Mapping[str, int]) -> bool:
    return name in before and type(value) is int and _names.is_axis(name)


def _where_positive(op: Op, sample: Sample) -> list[Sample]:
    """``sample`` with the magnitudes of tensors that have both signs; none where no tensor has."""
    exchange = {
        id(tensor): leaf_like(tensor.detach().abs(), tensor)
        for name, tensor in sample.named_tensors(op.signature)
        if is_floating(tensor)
        and domain_of(sample, name) in ANY_SIGN
        and bool((tensor < 0).any() & (tensor > 0).any())
    }
    there = exchanged(sample, exchange, sample.label, "same")
    return [replace(there, notes=[*there.notes, "all values are positive"])] if exchange else []


def shown(value: Any) -> str:
    """``value`` as a label shows it."""
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


def selected_count(op: Op, sample: Sample) -> int:
    """How many elements of an axis are selected at ``sample``, by the name of an integer argument,
    such as ``top_k``: of several the most; 0 where there is none."""
    values = _integers_at(op, sample).items()
    return max((value for name, value in values if _names.selects(name)), default=0)


def iteration_counts(op: Op, sample: Sample) -> dict[str, int]:
    """How often forward iterates at ``sample``, by the names of integer arguments."""
    values = _integers_at(op, sample).items()
    return {name: value for name, value in values if counts_iterations(name)}


def tolerances_at(op: Op, sample: Sample) -> dict[str, float]:
    """The positive numbers at ``sample`` that say how exactly forward solves, by their names."""
    found = {}
    for name in op.signature.parameters if op.signature is not None else ():
        value = _number_at(op, sample, name)
        if _names.is_tolerance(name) and value > 0.0:
            found[name] = value
    return found


def axes_from_behind(arguments: Mapping[str, Any]) -> dict[str, int]:
    """Those of ``arguments`` that are axes counted from the last one, as −1 is."""
    return {
        name: value
        for name, value in arguments.items()
        if type(value) is int and value < 0 and _names.is_axis(name)
    }


def counts_iterations(name: str) -> bool:
    """Whether an integer called ``name`` says how often something is iterated."""
    return bool(_ITERATIONS.fullmatch(name))


def _integers_at(op: Op, sample: Sample) -> dict[str, int]:
    """The arguments that are integers at ``sample``, defaults included."""
    names = positional_names(op.signature, len(sample.args))
    given = {**dict(zip(names, sample.args, strict=True)), **sample.kwargs}
    parameters = op.signature.parameters.values() if op.signature is not None else ()
    values = {**{item.name: item.default for item in parameters}, **given}
    return {name: value for name, value in values.items() if type(value) is int}


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


#: Names of numbers of elements that are taken together, of which there are several only where they
#: are fewer than what the sample holds, and what is tried then: a remainder is left of most sizes.
_OF_PARTS = re.compile(r"(?i)chunk|block|tile|bucket|split|segment|micro_?batch|panel")
_FEW = (2, 1)


def _of_parts(name: str, now: Any, sample: Sample) -> tuple[int, ...]:
    """Numbers of elements that are taken together of which the sample holds several."""
    largest = max((size for tensor in tensors_of(sample) for size in tensor.shape), default=0)
    return _FEW if type(now) is int and now > largest and _OF_PARTS.search(name) else ()


def _movable(op: Op, sample: Sample) -> dict[str, list[Any]]:
    """Argument → other values to try, those known to the code first."""
    if op.signature is None:
        return {}
    names = positional_names(op.signature, len(sample.args))
    given = {**dict(zip(names, sample.args, strict=True)), **sample.kwargs}
    rank = max((tensor.dim() for tensor in tensors_of(sample)), default=0)
    known = {item.name: item for item in gather(op)}
    said = prose(op.defining) if op.defining is not None else ""
    along_last = any(word in d for d in sample.domains.values() for word in ALONG_LAST)
    tensors = [name for name, value in given.items() if is_tensor(value)]
    starred = any(p.kind is p.VAR_POSITIONAL for p in op.signature.parameters.values())
    found = {}
    for parameter in op.signature.parameters.values():
        evidence = known.get(parameter.name)
        now = given.get(parameter.name, parameter.default)
        variable = parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD)
        if variable or evidence is None or now is inspect.Parameter.empty:
            continue
        limit = now is None and _LIMITS.search(parameter.name)
        if now is None and not limit and is_of_others(op, evidence, tensors):
            continue
        axis = _names.is_axis(parameter.name) and not evidence.sliced
        counts_members = starred and evidence.sliced  # as n of ``tensors[:n]``
        if _names.stops_gradients(parameter.name) or (along_last and axis) or counts_members:
            continue
        allowed = documented_range(said, parameter.name, known)
        if sample.origin != "inferred" and parameter.name in given and _is_chosen(parameter, now):
            # Who gave it may have had reasons.
            others = distinct(now, _known_numbers(parameter, now, evidence.values))
            found[parameter.name] = within(allowed, now, others)[:MOST_COMPARED]
            continue
        kind = evidence.ordered_kinds()[0][0] if now is None else ""
        zero = [0] if (evidence.switch or evidence.skipped) and not evidence.lag else []
        words = [*evidence.values, *zero, *documented_words(said, now)]
        candidates = [
            *_of_parts(parameter.name, now, sample),
            *values_for(parameter.name, now, words, kind, rank, sliced=evidence.sliced),
        ]
        others = distinct(now, within(allowed, now, candidates))[: _most_of(evidence, now)]
        if evidence.either_sign:
            others = distinct(now, [*within(allowed, now, _of_other_sign(now)), *others])
        if (
            type(now) in (int, float)
            and abs(now) == 1
            and documented_signs(said, parameter.name, known)
        ):
            others = [-now]
        elif type(now) is int and parameter.default is inspect.Parameter.empty and others:
            free = not (counts_iterations(parameter.name) or _names.selects(parameter.name))
            others += distinct(now, [_beyond_sizes(sample)]) if now > 0 and free else []
        found[parameter.name] = [
            one for one in others if keeps_order(parameter.name, one, given, known)
        ]
        if sum(map(bool, found.values())) >= MOST_ARGUMENTS:
            break
    return {name: others for name, others in found.items() if others}


def _is_chosen(parameter: inspect.Parameter, given: Any) -> bool:
    """Whether a value that was given says that the argument is meant to have it: it is not the
    default, which ``apply`` wants written out before a later argument. A flag and a name are one of
    a few that forward was written for, and where there is no default somebody had to give one."""
    free = isinstance(given, (bool, str, enum.Enum)) or parameter.default is parameter.empty
    same = type(given) is type(parameter.default) and given == parameter.default
    return not (free or same)


def _known_numbers(parameter: inspect.Parameter, now: Any, compared: Sequence[Any]) -> list[Any]:
    """Numbers that forward surely takes in place of one that was chosen: its default, and those
    that the code asks for by name. Fewer iterations, or a wider tolerance, leave an error."""
    name, default = parameter.name, parameter.default
    if type(now) not in (int, float) or counts_iterations(name) or _names.is_tolerance(name):
        return []
    usual = [default] if type(default) in (int, float) else []
    like = float(now) if type(default) is float else now  # 0 is given in place of 1.0, too
    return [*_of_its_type(compared, like), *usual]


def within(allowed: Range | None, now: Any, candidates: list[Any]) -> list[Any]:
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


def distinct(now: Any, candidates: Sequence[Any]) -> list[Any]:
    """``candidates`` each once, without those equal to ``now``."""
    seen = {repr(now)}
    return [one for one in candidates if not (repr(one) in seen or seen.add(repr(one)))]  # type: ignore[func-returns-value]


def _most_of(evidence: Evidence, now: Any) -> int:
    """How many values of an argument are tried: more names than numbers, and all that the code asks
    for, within limits."""
    if isinstance(now, (str, enum.Enum)) or evidence.chosen:
        return MOST_NAMES
    compared = _of_its_type(evidence.values, now) if type(now) is float else []
    return max(MOST_VALUES, min(len(compared), MOST_COMPARED))


def _of_its_type(values: Sequence[Any], now: Any) -> list[Any]:
    """Those of ``values`` that an argument which is ``now`` may have: a float that the code
    compares with a whole number may be that number."""
    whole = [float(v) if type(v) is int and type(now) is float else v for v in values]
    return [value for value in whole if type(value) is type(now)]


def values_for(
    name: str, now: Any, known: Sequence[Any], kind: str, rank: int, *, sliced: bool = False
) -> list[Any]:
    """Values to try for an argument that is ``now``.

    Args:
        known: those the code compares it with.
        sliced: whether forward takes elements up to it: it is no axis.
    """
    alike = _of_its_type(known, now)
    found: list[Any] = []
    match now:
        case bool():
            found = [not now]
        case enum.Enum():
            found = [*alike, *type(now)]
        case int() if _names.is_axis(name) and not sliced and now < MOST_AXES:
            found = _axes(now, rank)
        case int():
            found = [*alike, *_integers(name, now)]
        case float() if _names.is_tolerance(name):
            pass  # what is solved less exactly has a less exact gradient
        case float():
            found = [*alike, *floats_for(now)]
        case str():
            family = next((words for words in _FAMILIES if now in words), ())
            found = [*alike, *family]
        case tuple() | list() if now and all(type(part) is int for part in now):
            uneven = [part + (k == 0) for k, part in enumerate(now)]
            found = [type(now)(part + 1 for part in now), type(now)(uneven)]
        case None:
            found = _in_place_of_none(name, known, kind, rank)
    return found


def _of_other_sign(now: Any) -> list[Any]:
    """A number, or several, with the sign reversed; −1 for zero."""
    if type(now) in (int, float):
        return [-now if now else type(now)(-1)]
    whole = isinstance(now, (tuple, list)) and all(type(part) is int for part in now)
    return [type(now)(-part if part else -1 for part in now)] if whole and now else []


def _axes(now: int, rank: int) -> list[int]:
    """Another axis, counted from the end where ``now`` is not, and the same one counted so."""
    if not -rank <= now < rank:
        return [0, -1]
    other = (now + 1) % rank
    same = now - rank if now >= 0 else now + rank
    return [other - rank if now >= 0 else other, same] if rank > 1 else [same]


#: Names of limits, which forward takes from what there is where it gets none: a lower one cuts.
_LIMITS = re.compile(r"(?i)(?:^|_)max(?:imum)?_?\w|limit|capacity|budget")

#: Names of the number of iterations, of which an op says how many it needs.
_ITERATIONS = re.compile(r"(?:n_?|num_?|max_?|k_?|\w+_)?iter(?:s|ations?)?|max_?steps")


def _integers(name: str, now: int) -> list[int]:
    if now < 0:
        return [2, 1]  # a number that stands for nothing, as an ignored label does
    usual = [value for value in _names.ints(name) if value > now][:1]
    if counts_iterations(name):
        return [now + 1, *usual]  # one that stops earlier has not converged
    return [now + 1, *usual, max(now - 1, 1)]


def floats_for(now: float) -> list[float]:
    """Values to try for a number that is ``now``."""
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
