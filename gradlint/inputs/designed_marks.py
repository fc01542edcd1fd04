"""Further samples in which the number that stands for "ignore" occurs among the indices."""

from __future__ import annotations

import copy
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any

import torch

from gradlint.inputs import _names
from gradlint.inputs._gather import gather
from gradlint.inputs.designed import Designed, domain_of, exchanged, replaced
from gradlint.inputs.designed_arguments import with_arguments
from gradlint.inputs.designed_constructions import constructed
from gradlint.inputs.documentation import clauses
from gradlint.inputs.handed_on import prose_about
from gradlint.model.op import Op
from gradlint.model.sample import Sample, positional_names
from gradlint.targets.signature import signature_of

#: A tensor and its name.
_Named = tuple[str, torch.Tensor]


def marked_labels(op: Op, sample: Sample) -> Iterator[Designed]:
    """``sample`` with the number that stands for "ignore" among the indices: by its argument's
    value, such as -100, and by moving the argument to an index that occurs. It may be an argument
    of forward, or of the constructor of a module. A module that was given is not made anew: the
    number that it has is put among the indices."""
    indices = [
        (name, tensor)
        for name, tensor in sample.named_tensors(op.signature)
        if domain_of(sample, name) in ("indices", "sizes") and tensor.numel() > 1
    ]
    labels = [(n, t) for n, t in indices if domain_of(sample, n) == "indices"]
    yield from _held(op, sample, labels)
    yield from _documented(op, sample, labels)
    for argument, value, made in _marks(op, sample) if indices else ():
        padding = _names.stops_gradients(argument) or (
            value is None and _names.marks_entries(argument)
        )
        below = type(value) is int and value < 0 and _names.marks_entries(argument)
        named = any(word in argument.lower() for word in ("ignore", "blank"))
        if not padding and not below and not named:
            continue
        for name, tensor in indices if below or named else labels:
            yield from _marked(sample, argument, value, name, tensor, padding, made)


def _held(op: Op, sample: Sample, labels: Sequence[_Named]) -> Iterator[Designed]:
    """``sample`` with the row that a given module leaves out among the indices, where it has the
    number of that row as an attribute, which none of them is. Forward has to leave it out, too: it
    returns something else where the module has no such number."""
    module = op.module
    if module is None or op.constructor:
        return
    for attribute, value in vars(module).items():
        if not _names.stops_gradients(attribute) or type(value) is not int or value < 0:
            continue
        try:
            other = copy.deepcopy(module)
        except Exception:  # of a module that can't be copied: anything
            return
        setattr(other, attribute, None)
        unlike = replace(op, module=other, call=other)
        for name, tensor in labels:
            if not bool((tensor == value).any()):
                flat = tensor.reshape(-1).clone()
                flat[::3] = value
                label = f"where {attribute}={value} occurs in `{name}`"
                yield replace(replaced(sample, tensor, flat, label), unlike=unlike)


#: What an index below zero stands for, in words.
_LEFT_OUT = re.compile(
    r"(?i)\b(?:drop|ignor|pad|mask|miss|invalid|skip|absent|unused|empty|left out|no\b|none\b)"
)


def _documented(op: Op, sample: Sample, labels: Sequence[_Named]) -> Iterator[Designed]:
    """``sample`` with the number below zero among the indices by which documentation marks what is
    left out: "slots with token -1 were dropped"; with -1 where the code asks which
    of them are below zero."""
    signed = {item.name for item in gather(op) if item.signed} if labels else set()
    for name, tensor in labels:
        if name in signed and not bool((tensor < 0).any()):
            flat = tensor.reshape(-1).clone()
            flat[::3] = -1
            yield replaced(sample, tensor, flat, f"where -1 occurs in `{name}`")
            continue
        for clause in clauses(prose_about(op, name), name, [name]):
            found = re.match(r"[\s`]*(?:of|is|=|==|:)?\s*(-\d+)(?![\w.])", clause)
            if found and _LEFT_OUT.search(clause) and not bool((tensor < 0).any()):
                flat = tensor.reshape(-1).clone()
                flat[::3] = int(found[1])
                yield replaced(sample, tensor, flat, f"where {found[1]} occurs in `{name}`")
                break


#: The op and the sample with another value of an argument; None where there is no such op.
_Make = Callable[[Any], tuple[Op | None, Sample] | None]


def _marks(op: Op, sample: Sample) -> Iterator[tuple[str, Any, _Make]]:
    """The arguments of forward and of a module's constructor with their values, and how each is
    given another value."""
    if op.signature is not None:
        names = positional_names(op.signature, len(sample.args))
        given = {**dict(zip(names, sample.args, strict=True)), **sample.kwargs}
        for parameter in op.signature.parameters.values():
            name = parameter.name

            def moved(value: Any, name: str = name) -> tuple[Op | None, Sample]:
                return None, with_arguments(op, sample, {name: value})

            yield name, given.get(name, parameter.default), moved
    module = op.module
    signature = signature_of(type(module)) if module is not None else None
    for parameter in signature.parameters.values() if module is not None and signature else ():
        name = parameter.name

        def anew(value: Any, name: str = name) -> tuple[Op | None, Sample] | None:
            assert module is not None
            made = constructed(module, {**op.constructor, name: value})
            return None if made is None else (replace(op, module=made, call=made), sample)

        yield name, op.constructor.get(name, parameter.default), anew


def _marked(
    sample: Sample,
    argument: str,
    value: Any,
    name: str,
    tensor: torch.Tensor,
    padding: bool,
    made: _Make,
) -> Iterator[Designed]:
    """``sample`` with the number ``value`` of ``argument`` among the indices ``name``, and with an
    index that occurs as that number, also in a whole row.

    Args:
        padding: whether the argument may say only which rows get no gradient: then nothing can be
            judged unless the outputs show it.
        made: the op and the sample with another number for ``argument``.
    """
    flat = tensor.reshape(-1).clone()
    if type(value) is int and not bool((tensor == value).any()) and (value < 0 or not padding):
        flat[::3] = value
        yield replaced(sample, tensor, flat, f"where {argument}={value} occurs in `{name}`")
    negative = type(value) is int and value < 0 and _names.marks_entries(argument)
    other = made(value - 1) if negative and not padding else None
    if other is not None:
        # A number that backward holds where forward takes it from its argument.
        flat[::3] = value - 1
        label = f"with {argument}={value - 1}, which occurs in `{name}`"
        there = replace(other[1], label=label, kind="same")
        again = exchanged(there, {id(tensor): flat.reshape(tensor.shape)}, label, "same")
        yield Designed(again, {argument: value - 1}, op=other[0], only_if_seen=padding)
    occurring = int(tensor.reshape(-1)[0])
    if value is not None and not (type(value) is int and value != occurring):
        return
    moved = made(occurring)
    if moved is None:
        return
    op, there = moved
    label = f"with {argument}={occurring}, which occurs in `{name}`"
    marked = replace(there, label=label, kind="same")
    yield Designed(marked, {argument: occurring}, op=op, only_if_seen=padding)
    if tensor.dim() > 1 and len(tensor) > 1:
        filled = tensor.clone()
        filled[0] = occurring
        label = f"with {argument}={occurring}, which fills a row of `{name}`"
        row = exchanged(there, {id(tensor): filled}, label, "same")
        yield Designed(row, {argument: occurring}, op=op, only_if_seen=padding)
