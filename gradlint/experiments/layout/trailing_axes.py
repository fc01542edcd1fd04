"""Axes behind the first ones: whether an op is written for any number of them.

Code that counts axes from the front is: ``range(2, x.dim())``, ``(1,) * (x.dim() - 2)``, and so is
documentation that says ``(N, C, *)``. Where forward only carries the other axes along,
``x.shape[2:]``, it may still need a certain number of them; it is taken at its word only where it
treats each slice alike.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator
from dataclasses import dataclass, replace

from gradlint.experiments.layout.meant_broadcasting import parts_of, text_of
from gradlint.experiments.subject import Subject
from gradlint.inputs.described import ANY, said_of_arguments
from gradlint.inputs.documentation import STARRED, prose, starred_rank
from gradlint.inputs.resized import tensors_of

_NAME = r"(?P<name>[A-Za-z_]\w*)"
_RANK = r"(?:\.dim\(\)|\.ndim(?:ension\(\))?)"

#: Code for whatever axes are behind the first ones.
_COUNTS = re.compile(
    rf"\*\s*\(?\s*{_NAME}{_RANK}\s*-\s*(?P<first>[1-3])\b"
    rf"|\b(?P<name_before>[A-Za-z_]\w*){_RANK}\s*-\s*(?P<first_before>[1-3])\s*\)\s*\*"
    rf"|\brange\(\s*(?P<first_of_range>[1-3])\s*,\s*(?:(?P<name_of_range>[A-Za-z_]\w*){_RANK}"
    r"|len\((?P<name_of_len>[A-Za-z_]\w*)\.(?:shape|size\(\))\))\s*\)"
    r"|(?m:^\s*(?P<unpacked>(?:\w+\s*,\s*){1,3})\*\w+\s*=\s*(?P<name_of_rest>[A-Za-z_]\w*)"
    r"\.(?:shape|size\(\))\s*$)"
)

#: Code that carries the other axes along.
_CARRIES = re.compile(rf"\*\s*{_NAME}\.(?:shape|size\(\))\[\s*(?P<first>[1-3])\s*:\s*\]")


@dataclass(frozen=True)
class Trailing:
    """A tensor with axes behind the first ones.

    Args:
        number: of the tensor among those of the sample.
        first: axes that stand in front of these.
        counted: whether code or documentation is written for any number of them.
        documented: whether documentation says so.
        alike: the tensors that have the same axes there: those of its shape, and those of which
            documentation says that they have any number of axes, too.
    """

    number: int
    first: int
    counted: bool
    documented: bool
    alike: tuple[int, ...] = ()


def trailing_axes(subject: Subject) -> Trailing | None:
    """The tensor of which forward or documentation says that it has any number of axes behind the
    first ones; None where nothing says so, or it has no such axes."""
    signature = subject.op.signature
    tensors = tensors_of(subject.sample)
    order = {id(tensor): number for number, tensor in enumerate(tensors)}
    named = {name: order[id(tensor)] for name, tensor in subject.sample.named_tensors(signature)}
    main = next((k for k, t in enumerate(tensors) if t.requires_grad and t.dim()), None)
    if main is None:
        return None
    found = [*_documented(subject, named, main), *_written(subject, named, main)]
    fitting = [item for item in found if item.first <= tensors[item.number].dim()]
    known = max(fitting, key=lambda item: (item.counted, item.documented), default=None)
    if known is None:
        return None
    shape = tensors[known.number].shape
    alike = {k for k, tensor in enumerate(tensors) if tensor.shape == shape}
    alike |= {item.number for item in fitting if item.documented}
    return replace(known, alike=tuple(sorted(alike)))


def _documented(subject: Subject, named: dict[str, int], main: int) -> Iterator[Trailing]:
    for name, item in said_of_arguments(subject.op).items():
        *ahead, last = item.axes or ("",)
        if last in ANY and len(ahead) >= STARRED and name in named:
            yield Trailing(named[name], len(ahead), counted=True, documented=True)
    for part in parts_of(subject):
        rank = starred_rank(prose(part))
        if rank:
            yield Trailing(main, rank - 1, counted=True, documented=True)


def _written(subject: Subject, named: dict[str, int], main: int) -> Iterator[Trailing]:
    for text in _forwards(subject):
        for pattern, counted in ((_COUNTS, True), (_CARRIES, False)):
            for match in pattern.finditer(text):
                parts = match.groupdict()
                name = next(v for key, v in parts.items() if v and key.startswith("name"))
                firsts = [v for key, v in parts.items() if v and key.startswith("first")]
                first = int(firsts[0]) if firsts else (parts["unpacked"] or "").count(",")
                yield Trailing(named.get(name, main), first, counted=counted, documented=False)


def _forwards(subject: Subject) -> Iterator[str]:
    """The code that computes outputs."""
    for thing in parts_of(subject):
        names = ("forward",) if inspect.isclass(thing) else ()
        for part in [vars(thing).get(name) for name in names] if names else [thing]:
            function = getattr(part, "__func__", part)
            if inspect.isfunction(function) and "backward" not in function.__name__:
                yield text_of(function)
