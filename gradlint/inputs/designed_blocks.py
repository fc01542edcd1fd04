"""Further samples for numbers that divide axes: the size of a block, a number of groups or heads.

Where a block is larger than every axis there is only one, which is not full; where an axis has as
many groups as each has members, the two can be exchanged unseen.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from gradlint.inputs._source import syntax
from gradlint.inputs.designed import Designed
from gradlint.inputs.designed_arguments import with_arguments, with_moved
from gradlint.inputs.designed_constructions import with_constructed
from gradlint.inputs.resized import resized, tensors_of, tied_axes
from gradlint.model.op import Op
from gradlint.model.sample import Sample, positional_names
from gradlint.targets.executable import divisors_in
from gradlint.targets.signature import signature_of

#: Sizes of blocks that fit more than once in the axes of inferred samples. An axis of size 3 or 5
#: leaves a remainder by the first, one of size 4 by the second.
SMALL_BLOCKS = (2, 3)


def smaller_blocks(
    op: Op, sample: Sample, divisors: Collection[str], seed: int
) -> Iterator[Designed]:
    """``sample`` with blocks that fit more than once, for each number that is as large as some
    axis, so that there may be one block, or none.

    Args:
        divisors: names of the numbers by which the code of the op divides sizes.
    """
    sizes = [size for tensor in tensors_of(sample) for size in tensor.shape if size > 1]
    arguments, constructed = _numbers(op, sample, divisors)
    for value in SMALL_BLOCKS:
        if value >= max(sizes, default=0):
            return
        for name, now in arguments.items():
            if now > max(SMALL_BLOCKS) and now >= min(sizes):
                yield with_moved(op, sample, {name: value}, seed)
        for name, now in constructed.items():
            if now > max(SMALL_BLOCKS) and now >= min(sizes):
                made = with_constructed(op, sample, name, value)
                if made is not None:
                    yield made


def unlike_factors(
    op: Op, sample: Sample, divisors: Collection[str], taken: Mapping[str, Sequence[Any]], seed: int
) -> Iterator[Designed]:
    """``sample`` with axes as long as a number times itself made longer by that number, and modules
    made with such a size: there are as many groups as members in each, and what exchanges the two
    returns the same.

    Args:
        divisors: names of the numbers by which the code of the op divides sizes.
        taken: argument → its other values that forward takes.
    """
    groups = tied_axes(sample)
    arguments, constructed = _numbers(op, sample, divisors)
    for name, now in (arguments | constructed).items():
        others = taken.get(name, ()) if name in arguments else ()
        for value in dict.fromkeys((now, *others)):
            if type(value) is not int or value < 2 or value * value not in groups:
                continue
            size = value * (value + 1)
            longer = resized(sample, dict.fromkeys(groups[value * value], size), seed=seed)
            if longer is None:
                continue
            moved = {} if value == now else {name: value}
            label = f"with {name}={value} and axes of size {value * value} made {size} long"
            there = with_arguments(op, longer, moved) if moved else longer
            yield Designed(replace(there, label=label, kind="same"), moved)
    for value in dict.fromkeys(constructed.values()):
        for name, size in _constructor_integers(op).items():
            made = None
            if value > 1 and size == value * value:
                made = with_constructed(op, sample, name, value * (value + 1))
            if made is not None:
                yield made


def _numbers(
    op: Op, sample: Sample, divisors: Collection[str]
) -> tuple[dict[str, int], dict[str, int]]:
    """The integers among the arguments of forward, and among those of a module's constructor, that
    divide sizes."""
    arguments: dict[str, Any] = {}
    if op.signature is not None:
        names = positional_names(op.signature, len(sample.args))
        arguments = {k: parameter.default for k, parameter in op.signature.parameters.items()}
        arguments |= {**dict(zip(names, sample.args, strict=True)), **sample.kwargs}
    made = syntax(type(op.module).__init__) if op.module is not None else None
    own = divisors_in(made) if made is not None else frozenset()
    return (
        {name: v for name, v in arguments.items() if name in divisors and type(v) is int},
        {name: v for name, v in _constructor_integers(op).items() if name in own | {*divisors}},
    )


def _constructor_integers(op: Op) -> dict[str, int]:
    """The integers among the arguments of a module's constructor."""
    signature = signature_of(type(op.module)) if op.module is not None else None
    if signature is None:
        return {}
    made = {name: parameter.default for name, parameter in signature.parameters.items()}
    made |= op.constructor
    return {name: value for name, value in made.items() if type(value) is int}
