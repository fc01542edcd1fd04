"""Which axes have sizes that documentation gives: as a number, as a least one, as a product."""

from __future__ import annotations

import re

from gradlint.experiments.subject import Subject
from gradlint.inputs.described import ANY, only_shape, said_of_arguments
from gradlint.inputs.documentation import (
    described,
    documented_least,
    documented_no_less,
    prose,
    sizes_in_words,
)
from gradlint.inputs.resized import (
    Axis,
    tensors_of,
)

#: A size that is larger than another number by a fixed one.
_SUM = re.compile(r"[A-Za-z]\w*\s*\+\s*(\d{1,2})")

#: The names of sizes in an expression.
_SYMBOLS = re.compile(r"[A-Za-z]\w*")


def documented_numbers(subject: Subject) -> set[Axis]:
    """The axes whose size the documentation gives as a number, as in "points (N, 3)", or in words,
    as in "a batch of 3x3 matrices"."""
    sample, signature = subject.sample, subject.op.signature
    known = said_of_arguments(subject.op)
    order = {id(tensor): number for number, tensor in enumerate(tensors_of(sample))}
    defining = subject.op.defining
    in_words = sizes_in_words(prose(defining)) if defining is not None else ()
    found = set()
    for name, tensor in sample.named_tensors(signature):
        for sizes in in_words:
            if tensor.shape[-len(sizes) :] == sizes:
                number = order[id(tensor)]
                found |= {(number, tensor.dim() - 1 - back) for back in range(len(sizes))}
        item = known.get(name)
        if item is None:
            continue
        free = item.rank is None and item.axes[:1] == ("...",)
        named = item.axes[1:] if free else item.axes
        if not (free or item.rank == tensor.dim()) or len(named) > tensor.dim() or ANY & {*named}:
            continue
        first = tensor.dim() - len(named)
        for place, axis in enumerate(named, first):
            if axis == f"={tensor.shape[place]}":
                found.add((order[id(tensor)], place))
    return found


def documented_open_in_front(subject: Subject) -> list[int]:
    """The tensors that the documentation gives any number of axes in front: "points (..., 3)"."""
    sample = subject.sample
    known = said_of_arguments(subject.op)
    order = {id(tensor): number for number, tensor in enumerate(tensors_of(sample))}
    return [
        order[id(tensor)]
        for name, tensor in sample.named_tensors(subject.op.signature)
        if (item := known.get(name)) is not None and item.axes[:1] == ("...",)
    ]


def documented_least_sizes(subject: Subject) -> dict[Axis, int]:
    """The axes for which the documentation gives a least size above one, and that size; where it
    makes the size of another number, as in "(B, p + 1)", that at one."""
    text = _text_of(subject)
    return {
        axis: least
        for axis, symbol in _named_axes(subject, text)
        if (least := max(documented_least(text, symbol), _at_one(symbol))) > 1
    }


def _at_one(symbol: str) -> int:
    """The size that an expression gives where each name in it is one; one where it is none."""
    found = _SUM.fullmatch(symbol)
    return 1 + int(found[1]) if found else 1


def documented_orders(subject: Subject) -> list[tuple[Axis, Axis]]:
    """Pairs of axes of which the documentation says that the first one is no longer than the
    second one, as in "A (m, n), m >= n"."""
    text = _text_of(subject)
    named = _named_axes(subject, text)
    return [
        (shorter, longer)
        for shorter, low in named
        for longer, high in named
        if low != high and documented_no_less(text, high, low)
    ]


def _text_of(subject: Subject) -> str:
    defining = subject.op.defining
    return described(defining) if defining is not None else ""


def _named_axes(subject: Subject, text: str) -> list[tuple[Axis, str]]:
    """The axes that the documentation names, each with its name. The only shape in ``text`` is that
    of the first tensor."""
    known = said_of_arguments(subject.op)
    named = subject.sample.named_tensors(subject.op.signature)
    axes = {name: item.axes for name, item in known.items() if not ANY & set(item.axes)}
    if not any(axes.values()) and named:
        axes = {named[0][0]: only_shape(text)}
    order = {id(tensor): number for number, tensor in enumerate(tensors_of(subject.sample))}
    return [
        ((order[id(tensor)], place), axis)
        for name, tensor in named
        if len(axes.get(name, ())) == tensor.dim()
        for place, axis in enumerate(axes.get(name, ()))
    ]


def documented_products(subject: Subject) -> set[Axis]:
    """The axes whose size the documentation makes of several others, as in "rows (N * k, D)", and
    those others, as in "gates (N, k)", of inputs that were given: no size of these can change
    alone, and how they change together is known of inferred inputs only."""
    sample = subject.sample
    if sample.origin == "inferred":
        return set()
    known = said_of_arguments(subject.op)
    order = {id(tensor): number for number, tensor in enumerate(tensors_of(sample))}
    symbols = {
        (order[id(tensor)], place): set(_SYMBOLS.findall(axis))
        for name, tensor in sample.named_tensors(subject.op.signature)
        if (item := known.get(name)) is not None and item.rank == tensor.dim()
        for place, axis in enumerate(item.axes)
    }
    parts = set().union(*(found for found in symbols.values() if len(found) > 1))
    return {axis for axis, found in symbols.items() if found & parts}
