"""Layouts of memory, and which inputs require grad: neither may change a result."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator

import torch

from gradlint.reproduction.torch_alone.case import (
    Case,
    Defect,
    compared,
    each_compared,
    mapped,
    pulled,
    tensors,
)
from gradlint.reproduction.torch_alone.raised import in_words


def transposed(t: torch.Tensor) -> torch.Tensor | None:
    """The same numbers with the axes in reverse order in memory."""
    if t.dim() < 2:
        return None
    axes = list(reversed(range(t.dim())))
    return t.detach().permute(axes).contiguous().permute(axes)


def last_two_swapped(t: torch.Tensor) -> torch.Tensor | None:
    """The same numbers with the last two axes exchanged in memory."""
    return t.detach().mT.contiguous().mT if t.dim() > 2 else None


def channels_last(t: torch.Tensor) -> torch.Tensor | None:
    """The same numbers as torch.channels_last lays them out."""
    return t.detach().clone(memory_format=torch.channels_last) if t.dim() == 4 else None


def every_second(t: torch.Tensor) -> torch.Tensor | None:
    """The same numbers in every second place of memory."""
    if not t.dim():
        return None
    wide = torch.full((*t.shape, 2), 7, dtype=t.dtype, device=t.device)
    wide[..., 0] = t.detach()
    return wide[..., 0]


def rows_apart(t: torch.Tensor) -> torch.Tensor | None:
    """The same numbers with a gap behind every row."""
    if t.dim() < 2:
        return None
    wide = torch.full((*t.shape[:-1], t.shape[-1] + 3), 7, dtype=t.dtype, device=t.device)
    wide[..., :-3] = t.detach()
    return wide[..., :-3]


def shifted(t: torch.Tensor) -> torch.Tensor | None:
    """The same numbers from the second place of memory on."""
    wide = torch.full((t.numel() + 1,), 7, dtype=t.dtype, device=t.device)
    wide[1:] = t.detach().reshape(-1)
    return wide[1:].view(t.shape)


#: The layouts that are tried, in this order.
LAYOUTS: tuple[Callable[[torch.Tensor], torch.Tensor | None], ...] = (
    transposed,
    last_two_swapped,
    channels_last,
    every_second,
    rows_apart,
    shifted,
)


def depends_on_layout_of_grad_output(case: Case) -> Defect | None:
    """A gradient that is another one where grad_output lies otherwise in memory."""
    leaves, outputs = case.run()
    plain = case.cotangents(outputs)
    expected = pulled(outputs, leaves, plain)
    for layout in LAYOUTS:
        vs = [None if v is None else layout(v) for v in plain]
        if all(v is None for v in vs):
            continue
        vs = [w if v is None else v for v, w in zip(vs, plain)]
        words = f"grad_output lies otherwise in memory ({layout.__name__})"
        found = _pulled_otherwise(case, vs, expected, words, "a contiguous grad_output")
        if found is not None:
            return found
    return None


def depends_on_expanding(case: Case) -> Defect | None:
    """A gradient that is another one where grad_output is expanded, as by a sum."""
    leaves, outputs = case.run()
    ones = [None if v is None else torch.ones_like(v) for v in case.cotangents(outputs)]
    expected = pulled(outputs, leaves, ones)
    expanded = [
        None if v is None else torch.ones((), dtype=v.dtype, device=v.device).expand(v.shape)
        for v in ones
    ]
    words = "grad_output is expanded, as by out.sum().backward()"
    return _pulled_otherwise(case, expanded, expected, words, "the same numbers, contiguous")


def _pulled_otherwise(
    case: Case,
    vs: list[torch.Tensor | None],
    expected: list[torch.Tensor | None],
    words: str,
    source: str,
) -> Defect | None:
    leaves, outputs = case.run()
    try:
        got = pulled(outputs, leaves, vs)
    except Exception as error:
        return Defect(f"backward raises where {words}", "gradients", in_words(error), source)
    return each_compared(case, got, expected, f"where {words}, another gradient for", source)


def _swapped(new: dict[int, torch.Tensor]) -> Callable[[torch.Tensor], torch.Tensor]:
    return lambda t: new.get(id(t), t)


def depends_on_identity(case: Case) -> Defect | None:
    """A gradient that is another one where one tensor is passed twice."""
    source = "the sum of the gradients where two equal tensors are passed"
    for a, b in itertools.combinations(range(len(case.inputs)), 2):
        x, y = case.inputs[a], case.inputs[b]
        if x.shape != y.shape or x.dtype != y.dtype:
            continue
        apart = case.changed(_swapped({id(y): x}))
        parts = apart.gradients()
        ga, gb = parts[a], parts[b]
        if ga is None or gb is None:
            continue
        one = x.detach().clone().requires_grad_()
        given = mapped(case.given, _swapped({id(x): one, id(y): one}))
        names = [name for k, name in enumerate(case.names) if k != b]
        words = f"`{case.names[a]}` and `{case.names[b]}` are one tensor"
        try:
            got = Case(case.call, given, names, case.seed).gradients()
        except Exception as error:
            return Defect(f"it raises where {words}", "gradients", in_words(error), source)
        what = f"where {words}, another gradient for `{case.names[a]}`"
        found = compared(got[a], ga + gb, what, source, case.names[a])
        if found is not None:
            return found
    return None


def depends_on_layout_of_inputs(case: Case) -> Defect | None:
    """An output or a gradient that is another one where an argument lies otherwise in memory."""
    _, outputs = case.run()
    expected = case.gradients()
    source = "the same arguments, contiguous"
    count = len({id(t) for t in tensors(case.given)})
    alone = list(range(count)) if count > 1 else []
    for layout, only in itertools.product(LAYOUTS, [None, *alone]):
        other = case.changed(_laid(layout, only))
        which = "the arguments lie" if only is None else f"tensor {only + 1} of the arguments lies"
        words = f"{which} otherwise in memory ({layout.__name__})"
        try:
            _, got = other.run()
            gradients = other.gradients()
        except Exception as error:
            return Defect(f"it raises where {words}", "a result", in_words(error), source)
        for number, (now, was) in enumerate(zip(got, outputs)):
            found = compared(now, was, f"where {words}, another output {number}", source)
            if found is not None:
                return found
        what = f"where {words}, another gradient for"
        found = each_compared(other, gradients, expected, what, source)
        if found is not None:
            return found
    return None


def _laid(
    layout: Callable[[torch.Tensor], torch.Tensor | None], only: int | None
) -> Callable[[torch.Tensor], torch.Tensor]:
    """Lays tensors out as `layout` does: all of them, or the one with this number."""
    number = itertools.count()

    def laid(t: torch.Tensor) -> torch.Tensor:
        found = layout(t) if only is None or next(number) == only else None
        return t if found is None else found

    return laid


def subsets(count: int) -> Iterator[tuple[bool, ...]]:
    """Which inputs require grad: all ways but all and none, the smaller ones first."""
    ways = itertools.product((True, False), repeat=min(count, 5))
    for flags in sorted(ways, key=sum):
        if any(flags) and not all(flags):
            yield (*flags, *[True] * (count - len(flags)))


def depends_on_requires_grad(case: Case) -> Defect | None:
    """An output or a gradient that is another one where some inputs require none."""
    _, outputs = case.run()
    expected = case.gradients()
    source = "the same call where all inputs require grad"
    for flags in subsets(len(case.inputs)):
        names = [name for name, flag in zip(case.names, flags) if flag]
        words = f"only {', '.join(f'`{name}`' for name in names)} requires grad"
        try:
            _, now = case.run(flags=flags)
            got = case.gradients(flags=flags)
        except Exception as error:
            return Defect(f"it raises where {words}", "gradients", in_words(error), source)
        for number, (one, was) in enumerate(zip(now, outputs)):
            if one.shape == was.shape:
                found = compared(one, was, f"where {words}, another output {number}", source)
                if found is not None:
                    return found
        wanted = [g if flag else None for g, flag in zip(expected, flags)]
        what = f"where {words}, another gradient for"
        found = each_compared(case, got, wanted, what, source)
        if found is not None:
            return found
    return None
