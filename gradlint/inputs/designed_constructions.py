"""Further samples for other forms of a module: in the other mode, and made with other arguments."""

from __future__ import annotations

import copy
import enum
import inspect
import itertools
import math
import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import torch

from gradlint.inputs import _names
from gradlint.inputs.designed import Designed, Tested, is_floating, is_same
from gradlint.inputs.designed_arguments import (
    EPSILON,
    MOST_ARGUMENTS,
    MOST_NAMES,
    MOST_OPTIONALS,
    distinct,
    floats_for,
    shown,
    values_for,
    within,
)
from gradlint.inputs.designed_values import on_both_sides
from gradlint.inputs.documentation import (
    documented_range,
    prose,
)
from gradlint.inputs.resized import in_shape, resized, tensors_of, tied_axes
from gradlint.model.op import Op
from gradlint.model.related import Axis
from gradlint.model.sample import Sample
from gradlint.targets.compared import compared_strings
from gradlint.targets.signature import signature_of

#: Factor by which a number of a constructor is changed where nothing else suggests a value.
ELSEWHERE = 1.7


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
    held = {p.name: op.constructor.get(p.name, p.default) for p in signature.parameters.values()}
    # Options first: each has code of its own, and calls are limited.
    for name in sorted(held, key=lambda name: not isinstance(held[name], (str, enum.Enum))):
        parameter, now = signature.parameters[name], held[name]
        if count >= MOST_ARGUMENTS or _names.is_tolerance(name) or _names.stops_gradients(name):
            continue
        candidates = (
            _floats_of(name, now)
            if type(now) is float
            else [now + 1]
            if type(now) is int and _names.is_axis(name) and not -rank <= now < rank  # a width
            else values_for(name, now, compared.get(name, ()), "", rank)
            if isinstance(now, (bool, int, str, enum.Enum))
            else [*_limits_for(parameter), *_integers_for(parameter)]
            if now is None
            else []
        )
        allowed = documented_range(said, name, signature.parameters)
        values = within(allowed, now, distinct(now, candidates))
        # The same constructor takes several names, and one number is as good as another; but a
        # width takes only those that its heads divide, and they only those that divide it.
        chosen = values[: MOST_NAMES if isinstance(now, (str, enum.Enum)) else 1]
        if type(now) is int:
            chosen += distinct(now, within(allowed, now, _dividing(now)))
        for value in distinct(now, chosen):
            designed = with_constructed(op, sample, name, value)
            if designed is not None:
                count += 1
                yield designed


#: Where a limit that is left out is set (heuristic: among the usual values of activations, so that
#: some are beyond it and some are not).
_AMONG_VALUES = 0.5


def _limits_for(parameter: inspect.Parameter) -> list[float]:
    """A number for an argument that is None by default and bounds values, by its name, such as
    ``clip``; none for other arguments, or one that is annotated as no float."""
    said = str(parameter.annotation) if parameter.annotation is not parameter.empty else "float"
    return [_AMONG_VALUES] if _names.is_limit(parameter.name) and "float" in said else []


def _integers_for(parameter: inspect.Parameter) -> list[int]:
    """An integer for an argument that is None by default and is one by its name or its annotation,
    such as ``group_size``: two, of which axes have several."""
    if parameter.annotation is not parameter.empty:
        whole = re.search(r"\bint\b", str(parameter.annotation)) is not None
    else:
        kinds = _names.kinds(parameter.name)
        whole = max(kinds, key=kinds.__getitem__, default="") == "int"
    return [2] if whole and not _names.is_axis(parameter.name) else []


def _dividing(now: int) -> list[int]:
    """The largest number that divides ``now``, apart from one and itself."""
    return [now // k for k in range(2, math.isqrt(max(now, 0)) + 1) if not now % k][:1]


def with_constructed(op: Op, sample: Sample, name: str, value: Any) -> Designed | None:
    """``sample`` for the module of ``op`` made with another value of one argument; None where it
    can't be made so."""
    module, values = op.module, {**op.constructor, name: value}
    made = constructed(module, values) if module is not None else None
    samples = [sample]
    if made is None and module is not None and type(value) is int and value > 0:
        made = constructed(module, values, resize=True)
        signature = signature_of(type(module))
        default = signature.parameters[name].default if signature is not None else None
        change = op.constructor.get(name, default), value
        samples = _fitting(sample, module, made, change) if made is not None else []
    if made is None:
        return None
    label = f"with {name}={shown(value)} in the constructor"
    first, *others = (replace(there, label=label, kind="same") for there in samples)
    moved = {name: value}
    other = replace(op, module=made, call=made, constructor={**op.constructor, name: value})
    return Designed(first, moved, alternatives=others, op=other)


def with_given_weights(op: Op, sample: Sample) -> Iterator[Designed]:
    """``sample`` for the module made with a vector of weights in place of None: one for each class
    or channel, for an argument of its constructor that is called so."""
    module = op.module
    signature = signature_of(type(module)) if module is not None else None
    if module is None or signature is None:
        return
    for parameter in signature.parameters.values():
        name = parameter.name
        if op.constructor.get(name, parameter.default) is not None or not _names.weighs(name):
            continue
        shapes = [tensor.shape for tensor in tensors_of(sample) if is_floating(tensor)]
        sizes = dict.fromkeys(size for shape in shapes for size in (*shape[1:2], *shape[-1:]))
        for size in sizes:
            values = {**op.constructor, name: torch.linspace(0.6, 1.7, size)}
            made = _made_with(module, values)
            if made is not None:
                label = f"with {name} of {size} numbers in the constructor"
                there = replace(sample, label=label, kind="left-out")
                other = replace(op, module=made, call=made, constructor=values)
                yield Designed(there, {}, op=other)


def _made_with(module: torch.nn.Module, values: Mapping[str, Any]) -> torch.nn.Module | None:
    """A module of the class of ``module``, with its state as far as it has any; None where it can't
    be made."""
    state = torch.get_rng_state()
    try:
        made = type(module)(**values).train(module.training)
        made.load_state_dict(module.state_dict(), strict=False)
    except Exception:  # of the user's constructor: anything
        return None
    finally:
        torch.set_rng_state(state)
    return made


def _fitting(
    sample: Sample, module: torch.nn.Module, other: torch.nn.Module, change: tuple[Any, int]
) -> list[Sample]:
    """``sample`` in sizes that ``other`` may take in place of ``module``, of which one argument was
    changed: as wide as its parameters, as before, and with the argument's size in place of the old
    one. Of several arguments of one size, one may be meant for outputs."""
    tensors, (old, new) = tensors_of(sample), change
    own = [axis for axis in tied_axes(sample).get(old, ()) if is_floating(tensors[axis[0]])]
    changed = resized(sample, dict.fromkeys(own, new), seed=0) if own else None
    made: dict[tuple[torch.Size, ...], Sample] = {}
    for there in (_as_wide(sample, module, other), sample, changed):
        if there is not None:
            made.setdefault(shapes_of(there), there)
    return list(made.values())


def shapes_of(sample: Sample) -> tuple[torch.Size, ...]:
    """The shapes of all tensors."""
    return tuple(tensor.shape for tensor in tensors_of(sample))


def _as_wide(sample: Sample, module: torch.nn.Module, other: torch.nn.Module) -> Sample | None:
    """``sample`` with axes of floating numbers as long as those of the parameters of ``other``,
    where they are as long as those of ``module``; None where a size turns into two."""
    wider: dict[int, set[int]] = {}
    for before, after in zip(module.parameters(), other.parameters(), strict=True):
        for old, new in zip(before.shape, after.shape, strict=True):
            wider.setdefault(old, set()).add(new)
    tensors = tensors_of(sample)
    change: dict[Axis, int] = {}
    for size, axes in tied_axes(sample).items():
        sizes = wider.get(size, {size})
        if len(sizes) > 1:
            return None
        wide = [axis for axis in axes if is_floating(tensors[axis[0]])]
        change |= dict.fromkeys(wide, min(sizes))
    return resized(sample, change, seed=0)


def with_larger_parameters(op: Op, sample: Sample, factor: float) -> Designed | None:
    """``sample`` for a copy of the module with parameters ``factor`` times as large; None where
    there are none, or the module can't be copied."""
    if op.module is None or not any(p.is_floating_point() for p in op.module.parameters()):
        return None
    try:
        module = copy.deepcopy(op.module)
    except Exception:  # of a module that can't be copied: anything
        return None
    with torch.no_grad():
        for parameter in module.parameters():
            if parameter.is_floating_point():
                parameter.mul_(factor)
    words = f"where parameters are {factor:.2g} times as large"
    label = f"{sample.label}, {words}" if sample.label.startswith("with ") else words
    there = replace(sample, label=label, kind="special")
    return Designed(there, {}, op=replace(op, module=module, call=module))


def with_parameters_around(
    op: Op, sample: Sample, compared: Sequence[Tested]
) -> Iterator[Designed]:
    """``sample`` for a copy of the module with a parameter on both sides of a number that forward
    compares it with: a scale that is kept below a limit is learned on both sides of it.

    Args:
        compared: tensors that are compared, each with the number.
    """
    named = dict(op.module.named_parameters()) if op.module is not None else {}
    for name, parameter in named.items():
        marks = sorted({mark for seen, mark in compared if is_same(parameter, seen)})
        if not marks or not is_floating(parameter):
            continue
        try:
            module = copy.deepcopy(op.module)
        except Exception:  # of a module that can't be copied: anything
            return
        assert module is not None
        with torch.no_grad():
            made = module.get_parameter(name)
            made.copy_(on_both_sides(made, marks))
        shown = ", ".join(f"{mark:g}" for mark in marks)
        there = replace(sample, label=f"where `{name}` is on both sides of {shown}", kind="same")
        yield Designed(there, {}, op=replace(op, module=module, call=module))


#: How code takes away the sign of a number.
_WITHOUT_SIGN = re.compile(r"\babs\(|\bsign\(|\bsgn\(")


def with_parameters_of_both_signs(op: Op, sample: Sample) -> Designed | None:
    """``sample`` for a copy of the module of which every other element of a positive parameter is
    negative; None where no parameter is positive, or the code of the op's file takes away no sign.
    """
    module = op.module
    if module is None or not _WITHOUT_SIGN.search(_code_of_file(type(module))):
        return None
    try:
        made = copy.deepcopy(module)
    except Exception:  # of a module that can't be copied: anything
        return None
    changed = False
    with torch.no_grad():
        for parameter in made.parameters():
            if parameter.is_floating_point() and parameter.numel() and bool((parameter > 0).all()):
                odd = torch.arange(parameter.numel()).reshape(parameter.shape) % 2 == 0
                parameter.mul_(torch.where(odd, -1.0, 1.0).to(parameter))
                changed = True
    there = replace(sample, label="where parameters have both signs", kind="special")
    return Designed(there, {}, op=replace(op, module=made, call=made)) if changed else None


def _code_of_file(cls: type) -> str:
    try:
        return inspect.getsource(sys.modules[cls.__module__])
    except (KeyError, OSError, TypeError):
        return ""


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
        return floats_for(now)
    usual = [value for value in _names.floats(name) if value < 1.0 or now > 1.0]
    return [*usual, ELSEWHERE * now]


def constructed(
    module: torch.nn.Module, values: Mapping[str, Any], *, resize: bool = False
) -> torch.nn.Module | None:
    """A module of the class of ``module`` and with its state, made with other arguments; None where
    the constructor refuses these, or makes parameters of other shapes.

    Args:
        resize: whether parameters may have other sizes, along as many axes; buffers are then as
            the constructor makes them.
    """
    state = torch.get_rng_state()
    try:
        made = type(module)(**values).train(module.training)
        held = {name: value.dtype for name, value in module.state_dict().items()}
        if resize:
            _take_resized(made, module)
        else:
            made.load_state_dict(module.state_dict())
        alike = {name: value.dtype for name, value in made.state_dict().items()} == held
        grads = [parameter.requires_grad for parameter in module.parameters()]
        alike &= [parameter.requires_grad for parameter in made.parameters()] == grads
    except Exception:  # of the user's constructor: anything
        return None
    finally:
        torch.set_rng_state(state)
    return made if alike else None


def _take_resized(made: torch.nn.Module, module: torch.nn.Module) -> None:
    """Give the parameters of ``made`` the values of those of ``module``, and more like them."""
    for new, old in zip(made.parameters(), module.parameters(), strict=True):
        if new.dim() != old.dim():
            raise ValueError("a parameter has another number of axes")
        with torch.no_grad():
            new.copy_(in_shape(old, new.shape, seed=0))
