"""Which samples a spec asks for, with one description of every argument per sample."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from gradlint.expressions import limits
from gradlint.expressions.limits import ExpressionError
from gradlint.spec._dims import Axis, combinations, size_of
from gradlint.spec._model import Case, Input, OpSpec
from gradlint.spec._values import wrong_range, wrong_value
from gradlint.spec._yaml import Document, Path

#: What the samples of a spec may cost to plan: an argument counts :data:`_ARGUMENT`, a character of
#: a size one (heuristic: this much takes about half a second).
_MOST_COST = 2_000_000
_ARGUMENT = 20
#: Axes of a tensor. torch's kernels take 64, and what looks at an operator adds some of its own.
MAX_AXES = 32
#: Characters of a label.
_LABEL = 1_000

NONE = Input.model_validate({"value": None})


@dataclass(frozen=True)
class Planned:
    """One sample, not made yet.

    Args:
        label: unique among the samples of the spec.
        dims: dim → size.
        inputs: argument → what it is; those that are not passed are left out.
        places: argument → where the spec describes it.
    """

    label: str
    dims: dict[str, int]
    inputs: dict[str, Input]
    places: dict[str, Path]


def planned(spec: OpSpec) -> list[Planned]:
    """The samples of ``spec``, in order."""
    if not spec.inputs:
        return []
    made = [_case(spec, case, index) for index, case in enumerate(spec.cases or [])]
    if spec.cases is None:
        made = _swept(spec)
    seen: dict[str, int] = {}
    unique = []
    for item in made:
        label = item.label if len(item.label) <= _LABEL else item.label[: _LABEL - 1] + "…"
        seen[label] = seen.get(label, 0) + 1
        again = f"{label}#{seen[label]}" if seen[label] > 1 else label
        unique.append(Planned(again, item.dims, item.inputs, item.places))
    return unique


def sample_labels(spec: OpSpec) -> list[str]:
    """Labels of the samples of ``spec``; none where inputs are to be inferred."""
    return [item.label for item in planned(spec)]


def _swept(spec: OpSpec) -> list[Planned]:
    axes = [Axis(name, tuple(sizes)) for name, sizes in spec.dims.items()]
    for name, item in spec.inputs.items():
        choices = [item]
        if item.values is not None and item.shape is None:
            choices = [Input.model_validate({"value": value}) for value in item.values]
        if item.optional:
            choices = [*choices, NONE]
        if len(choices) > 1:
            axes.append(Axis(name, tuple(choices)))
    made = []
    for combination in combinations(axes):
        dims: dict[str, int] = {}
        inputs = {name: _first(item) for name, item in spec.inputs.items()}
        words = []
        for position, (axis, choice) in enumerate(zip(axes, combination, strict=True)):
            chosen = axis.choices[choice]
            if position < len(spec.dims):
                dims[axis.name] = chosen
                words.append(f"{axis.name}={chosen}")
            else:
                inputs[axis.name] = chosen
                if choice:
                    words.append(f"{axis.name}={_short(chosen.value)}")
        places = {name: ("inputs", name) for name in inputs}
        made.append(Planned(",".join(words) or "spec", dims, inputs, places))
    return made


def _case(spec: OpSpec, case: Case, index: int) -> Planned:
    dims = {name: sizes[0] for name, sizes in spec.dims.items()} | case.dims
    inputs = {name: _first(item) for name, item in spec.inputs.items()}
    places: dict[str, Path] = {name: ("inputs", name) for name in inputs}
    for name, item in case.inputs.items():
        inputs[name] = _first(item)
        places[name] = ("cases", index, "inputs", name)
    for name in case.omit:
        inputs.pop(name, None)
    words = [f"{name}={size}" for name, size in dims.items()]
    words += [
        f"{name}={_short(item.value)}"
        for name, item in case.inputs.items()
        if item.given == {"value"}
    ]
    return Planned(case.label or ",".join(words) or f"case {index + 1}", dims, inputs, places)


def _first(item: Input) -> Input:
    if item.values is not None and item.shape is None:
        return Input.model_validate({"value": item.values[0]})
    return item


def _short(value: Any) -> str:
    text = value if isinstance(value, str) else repr(value)
    return text if len(text) <= 20 else text[:19] + "…"


# -- whether the sizes make sense, checked without torch ---------------------------------------


def check_samples(spec: OpSpec, document: Document) -> None:
    """Note sizes that are negative or giant, and values that don't fit their shape."""
    noted: set[Path] = set()

    def note(path: Path, message: str, hint: str = "") -> None:
        # One sample is enough to show it.
        if path not in noted:
            noted.add(path)
            document.problem(document.value(path), message, hint)

    cost = 0
    for sample in planned(spec):
        total = 0
        for name, item in sample.inputs.items():
            cost += _cost(item, sample.dims)
            if cost > _MOST_COST:
                key = "inputs" if spec.cases is None else "cases"
                note((key,), "all samples together have too many arguments and sizes")
                return
            total += _check_input(item, sample, sample.places[name], note)
        if total > limits.MAX_ELEMENTS:
            note(
                ("dims",) if spec.dims else ("inputs",),
                f"the inputs have {total:,} elements at {sample.label}; at most "
                f"{limits.MAX_ELEMENTS:,} are allowed",
            )


def _cost(item: Input, dims: dict[str, int]) -> int:
    parts = [*(item.items_list or ()), *(item.items_tuple or ()), *(item.items_dict or {}).values()]
    sizes = [*(item.shape or ()), *(item.range or ())]
    texts = sum(len(size) + len(dims) for size in sizes if isinstance(size, str))
    values = _ARGUMENT * len(item.value) if isinstance(item.value, list) else 0
    return _ARGUMENT + len(sizes) + texts + values + sum(_cost(part, dims) for part in parts)


def _check_input(item: Input, sample: Planned, path: Path, note: Any) -> int:
    """Note what is wrong with one argument; its number of elements."""
    total = 0
    for key, group in (("list", item.items_list), ("tuple", item.items_tuple)):
        for index, part in enumerate(group or ()):
            total += _check_input(part, sample, (*path, key, index), note)
    for name, part in (item.items_dict or {}).items():
        total += _check_input(part, sample, (*path, "dict", name), note)
    if item.range is not None:
        _check_range(item, sample, (*path, "range"), note)
    if item.shape is None:
        return total
    key, why = wrong_value(item)
    if key:
        note((*path, key), why, "write numbers that the dtype can hold")
    if len(item.shape) > MAX_AXES:
        note((*path, "shape"), f"{len(item.shape)} axes; at most {MAX_AXES} are allowed")
        return total
    shape = [
        _size(size, sample, (*path, "shape", axis), note) for axis, size in enumerate(item.shape)
    ]
    for axis, size in enumerate(shape):
        if size is not None and size < 0:
            note(
                (*path, "shape", axis),
                f"the size `{item.shape[axis]}` is {size} at {sample.label}",
            )
    known = [size for size in shape if size is not None]
    if len(known) < len(shape) or min(known, default=0) < 0:
        return total
    _check_shape(item, known, sample, path, note)
    return total + math.prod(known)


def _check_range(item: Input, sample: Planned, path: Path, note: Any) -> None:
    low, high = (_size(end, sample, path, note) for end in item.range or ())
    if low is None or high is None:
        return
    why = f"no integer lies in [{low}, {high})" if low >= high else wrong_range(item, low, high)
    if why:
        note(path, f"{why} at {sample.label}")


def _check_shape(item: Input, known: list[int], sample: Planned, path: Path, note: Any) -> None:
    """Note what does not fit the shape ``known``."""
    if isinstance(item.value, list) and _shape(item.value) != tuple(known):
        got = _shape(item.value)
        what = "ragged" if got is None else f"of shape {list(got)}"
        note((*path, "value"), f"the value is {what}, but the shape is {known} at {sample.label}")
    if item.domain == "spd" and (len(known) < 2 or known[-1] != known[-2]):
        note((*path, "domain"), f"spd needs square matrices; the shape is {known}")
    if item.sparse == "csr" and len(known) != 2:
        note((*path, "sparse"), f"csr needs two axes; the shape is {known}", "write coo")
    # A size of zero hides the others, which torch multiplies all the same for strides.
    if 0 in known and math.prod(max(size, 1) for size in known) > limits.MAX_ELEMENTS:
        note(
            (*path, "shape"),
            f"the sizes beside those of zero are too large at {sample.label}; at most "
            f"{limits.MAX_ELEMENTS:,} elements are allowed",
        )


def _size(size: int | str, sample: Planned, path: Path, note: Any) -> int | None:
    try:
        return size_of(size, sample.dims)
    except ExpressionError as error:
        note(path, f"`{size}`: {error.message}", error.hint)
        return None


def _shape(value: Any) -> tuple[int, ...] | None:
    """Shape of nested lists; None where they are ragged."""
    if not isinstance(value, list):
        return ()
    parts = {_shape(part) for part in value}
    if len(parts) > 1 or None in parts:
        return None
    (inner,) = parts or {()}
    return (len(value), *(inner or ()))
