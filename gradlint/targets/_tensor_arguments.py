"""Tensors for the constructor of a module: their types and shapes, by documentation and names.

A constructor checks little of what it is given: a table of indices is kept as a buffer and used by
forward alone. So the form of a tensor is read before anything is tried.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import prod
from typing import Literal

import torch

Kind = Literal["float", "int", "bool"]

#: Characters behind a name that are about it, at most.
_CLAUSE = 100

#: A shape in brackets: ``(edges, 2)``, ``[count, dim]``, ``(n,)``.
_SHAPE = re.compile(r"[(\[]\s*(\w+(?:\s*,\s*\w+)*)\s*,?\s*[)\]]")

#: Words in brackets that are types and no shapes.
_TYPES = frozenset({"tensor", "longtensor", "optional", "int", "float", "bool", "long", "integer"})

_INTEGER = re.compile(r"\b(?:u?int(?:egers?|\d+)?|longtensor|long|index|indices)\b")
_BOOLEAN = re.compile(r"\bbool(?:ean|tensor)?s?\b|\bmask\b")

#: Names of tensors of indices and of masks by habit, and how many indices belong together.
_INDICES = re.compile(
    r"(?:^|_)(?:idx|index|indices|ids?|edges?|pairs?|bonds|faces|triangles|tri|neighbou?rs|perm"
    r"|permutation|parents?|segments?|connectivity|cols?|columns?|rows?|src|dst|senders|receivers"
    r"|labels?)$"
)
_MASK = re.compile(r"(?:^|_)mask$")
#: Names and words of floating tensors that are above zero.
POSITIVE_NAMES = re.compile(
    r"(?:^|_)(?:scales?|sigmas?|stds?|variances?|vars?|temperatures?|bandwidths?|length_?scales?"
    r"|step_?sizes?)$"
)
_POSITIVE = re.compile(r"(?<!non-)(?<!non )\bpositive\b|>\s*0(?![.\w])")
#: How many of a thing there are: "n_heads", "num_features".
_COUNTS = re.compile(r"^(?:n|num)_")

_TOGETHER = ((r"faces|triangles|^tri$", 3), (r"edges$|pairs$|bonds", 2))


#: The least of values that are above zero (heuristic: a divisor near zero leaves no digits).
_LEAST_POSITIVE = 0.3


@dataclass(frozen=True)
class TensorForm:
    """What a tensor is like.

    Args:
        kind: of its elements.
        axes: a number, or the name of a size, for each axis.
        positive: whether its elements are above zero.
    """

    kind: Kind
    axes: tuple[str, ...]
    positive: bool = False


def tensor_forms(cls: type, names: Sequence[str]) -> dict[str, TensorForm]:
    """Argument of the constructor of ``cls`` → its form, for those of ``names``, which are tensors,
    of which documentation or name says something."""
    texts = (inspect.getdoc(cls), inspect.getdoc(cls.__init__))  # type: ignore[misc]
    text = " ".join(" ".join((text or "").split()) for text in texts)
    forms = {name: _form(name, _clause(text, name)) for name in names}
    return {name: form for name, form in forms.items() if form is not None}


def _clause(text: str, name: str) -> str:
    """What follows ``name`` in ``text`` up to the end of the sentence; the place that has a shape
    where there are several."""
    found = [
        re.split(r"[.;](?:\s|$)|\s\w+:\s", text[match.end() : match.end() + _CLAUSE])[0]
        for match in re.finditer(rf"(?<![\w.]){re.escape(name)}(?!\w)`*", text)
    ]
    return next((clause for clause in found if _axes(clause)), found[0] if found else "")


def _axes(clause: str) -> tuple[str, ...]:
    for match in _SHAPE.finditer(clause):
        axes = tuple(axis.strip() for axis in match.group(1).split(","))
        if _TYPES.isdisjoint(axis.lower() for axis in axes):
            return axes
    return ()


def _form(name: str, clause: str) -> TensorForm | None:
    short, said = name.lower(), clause.lower()
    indices = _INDICES.search(short) is not None
    axes = _axes(clause)
    kind: Kind = "float"
    if indices or _INTEGER.search(said):
        kind = "int"
    elif _MASK.search(short) or _BOOLEAN.search(said):
        kind = "bool"
    if not axes and kind == "float":
        return None
    if not axes:
        count = next((n for pattern, n in _TOGETHER if re.search(pattern, short)), 0)
        axes = (f"{name}.0", str(count)) if indices and count else (f"{name}.0",)
    positive = POSITIVE_NAMES.search(short) or _POSITIVE.search(said)
    return TensorForm(kind, axes, kind == "float" and positive is not None)


def size_named(axis: str, names: Iterable[str]) -> str | None:
    """The only one of ``names``, of sizes, that ``axis`` is short for: ``out`` for
    ``out_features``, ``C_in`` for ``in_channels``, ``C`` for ``channels``, ``heads`` for
    ``n_heads``; None where there is none, or several."""
    parts = [part for part in axis.lower().split("_") if part]
    words = [part for part in parts if len(part) > 1] or parts
    found = []
    for name in names:
        own = _COUNTS.sub("", name.lower()).split("_")
        if words and len(words[0]) > 1:
            fits = own[: len(words)] == words
        else:  # a letter; "N" is seldom one of "n_heads"
            fits = own == [name.lower()] and own[0][0] in words
        found += [name] if fits else []
    return found[0] if len(found) == 1 else None


def made(form: TensorForm, sizes: Mapping[str, int], high: int) -> torch.Tensor:
    """A tensor of a form.

    Args:
        form: its kind and axes.
        sizes: name of a size → its value.
        high: integers are below it; those along the last axis differ where there is room.
    """
    shape = [int(axis) if axis.isdigit() else sizes[axis] for axis in form.axes]
    if form.kind == "float":
        values = torch.randn(shape, dtype=torch.float64)
        return _LEAST_POSITIVE + values.abs() if form.positive else values
    if len(shape) < 2:
        places = torch.arange(prod(shape)).reshape(shape)
    else:
        rows = torch.arange(prod(shape[:-1])).reshape(*shape[:-1], 1)
        places = rows + torch.arange(shape[-1])
    return places % high if form.kind == "int" else places % 3 != 1
