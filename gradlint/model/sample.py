"""A sample: concrete arguments for an op."""

from __future__ import annotations

import dataclasses
import inspect
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any, Literal

import torch

from gradlint.base.text import short_text
from gradlint.model.related import Bound, RelatedAxis
from gradlint.model.report import Argument, SampleReport

#: How a sample relates to the first one of its op: "same", of its kind (the same ranks and
#: preconditions); "broadcast", an operand of size 1 along an axis; "other-rank", a tensor with an
#: axis more or less; "left-out", with an optional tensor that given inputs leave out; "special", a
#: whole tensor with values of one sort, such as one sign; "extreme", values of other magnitudes. A
#: finding on another kind than "same" weighs less.
SampleKind = Literal["same", "broadcast", "other-rank", "left-out", "special", "extreme"]


@dataclass
class Sample:
    """Arguments for one call of an op.

    Args:
        label: short and unique among the samples of an op, e.g. ``inferred`` or ``N=4,C=8``.
        origin: "inferred", "--inputs", "sample_inputs" or "spec".
        args: positional arguments; tensors may sit in nested tuples, lists and dicts.
            A floating or complex tensor that requires grad is differentiable.
        kwargs: keyword arguments, likewise (not for ``torch.autograd.Function`` before 2.x:
            ``apply`` takes positional arguments only).
        notes: what was inferred or adjusted, as sentences.
        domains: argument name → domain in words ("all reals", "positive", "rows sum to 1" …).
        held: axes, as positions of tensor and axis, whose elements each have a meaning of their
            own to the op: they can't be given another size.
        kind: how it relates to the first sample.
        moved: arguments with other values than in the first sample, which gradlint chose.
        backward_only: whether forward returns exactly what it returned before these were moved:
            they can only change backward.
        otherwise: makes samples that were guessed otherwise, one after the other, for a gradient
            that is wrong here; None where nothing was guessed.
        unmeant: whether forward takes it by broadcasting, for which nothing says that it is meant.
        related: axes whose sizes follow from those of others.
        bounds: that values keep, of tensors by their position.
        unlike: positions of tensors of integers that are never alike, and which of them: "rows" of
            a matrix, "elements" of a row, or a "permutation".
        narrowed: names of tensors whose values have one sign, or lie between 0 and 1, because
            backward returned what is not finite at others, or other tensors need it; forward is
            finite at others, and nothing says that they are not meant.
        guarded: whether a number was moved by which forward bounds something that is below it
            here, and which is as small at its own value as what keeps from dividing by zero.
        increasing: positions of tensors that increase along the last axis by what they are, be they
            so short that it might be chance.
        unmarked: whether who gave the tensors marked none of them as requiring grad, so that all
            floating ones do.
    """

    label: str
    origin: str
    args: tuple[Any, ...] = ()
    kwargs: dict[str, Any] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)
    domains: dict[str, str] = field(default_factory=dict)
    held: frozenset[tuple[int, int]] = frozenset()
    kind: SampleKind = "same"
    moved: tuple[str, ...] = ()
    backward_only: bool = False
    otherwise: Callable[[], Iterator[Sample]] | None = field(
        default=None, repr=False, compare=False
    )
    unmeant: bool = False
    related: tuple[RelatedAxis, ...] = ()
    bounds: tuple[Bound, ...] = ()
    unlike: tuple[tuple[int, str], ...] = ()
    narrowed: tuple[str, ...] = ()
    guarded: bool = False
    unmarked: bool = False
    increasing: tuple[int, ...] = ()

    def converted(self, dtype: torch.dtype, device: str) -> Sample:
        """The sample with floating tensors in ``dtype`` (complex ones in the matching complex
        dtype), every tensor on ``device``; ``requires_grad`` flags are kept."""
        complex_of = {
            torch.float64: torch.complex128,
            torch.float32: torch.complex64,
            torch.float16: torch.complex32,
        }

        def convert(tensor: torch.Tensor) -> torch.Tensor:
            wanted = tensor.dtype
            if tensor.is_floating_point():
                wanted = dtype
            elif tensor.is_complex():
                wanted = complex_of.get(dtype, torch.complex64)
            moved = tensor.detach().to(device=device, dtype=wanted)
            return moved.requires_grad_(tensor.requires_grad)

        make = self.otherwise
        return Sample(
            self.label,
            self.origin,
            map_tensors(self.args, convert),
            map_tensors(self.kwargs, convert),
            list(self.notes),
            dict(self.domains),
            self.held,
            self.kind,
            self.moved,
            self.backward_only,
            None if make is None else lambda: (other.converted(dtype, device) for other in make()),
            self.unmeant,
            self.related,
            self.bounds,
            self.unlike,
            self.narrowed,
            self.guarded,
            self.unmarked,
            self.increasing,
        )

    def named_tensors(self, signature: inspect.Signature | None) -> list[tuple[str, torch.Tensor]]:
        """Every tensor with its name in the op's signature: ``x``, ``xs[0]``, ``state['h']``."""
        return [
            (name, value)
            for name, value in self.named_leaves(signature)
            if isinstance(value, torch.Tensor)
        ]

    def named_leaves(self, signature: inspect.Signature | None) -> Iterator[tuple[str, Any]]:
        """Every leaf value (tensors and others) with its name, in the order of the arguments."""
        names = positional_names(signature, len(self.args))
        for name, value in zip(names, self.args, strict=True):
            yield from _walk(name, value)
        for name, value in self.kwargs.items():
            yield from _walk(name, value)

    def report(self, signature: inspect.Signature | None) -> SampleReport:
        """What a report shows of this sample."""
        arguments = [described(name, value) for name, value in self.named_leaves(signature)]
        return SampleReport(self.label, self.origin, arguments, list(self.notes))


def described(name: str, value: Any) -> Argument:
    """What a report shows of one argument."""
    if not isinstance(value, torch.Tensor):
        return Argument(name, value=short_text(value))
    strided = value.layout == torch.strided
    return Argument(
        name,
        list(value.shape),
        str(value.dtype).removeprefix("torch."),
        str(value.device),
        list(value.stride()) if strided else None,
        value.requires_grad,
    )


def positional_names(signature: inspect.Signature | None, count: int) -> list[str]:
    """Names of ``count`` positional arguments under ``signature``; ``args[k]`` for varargs."""
    names: list[str] = []
    variable = ""
    for parameter in signature.parameters.values() if signature else ():
        if parameter.kind is inspect.Parameter.VAR_POSITIONAL:
            variable = parameter.name
            break
        if parameter.kind is inspect.Parameter.KEYWORD_ONLY:
            break
        if len(names) < count:
            names.append(parameter.name)
    variable = variable or ("args" if not names else "extra")
    rest = count - len(names)
    return names + [f"{variable}[{index}]" for index in range(rest)]


def map_tensors(value: Any, convert: Callable[[torch.Tensor], torch.Tensor]) -> Any:
    """``value`` with every tensor in nested tuples, lists and dicts replaced by ``convert(t)``.

    The same tensor passed twice stays one tensor.
    """
    return _mapped(value, convert, {}, torch.Tensor)


#: Most leaves are of these types, and stay as they are.
_PLAIN = frozenset({int, float, bool, str, type(None)})


def _mapped(
    item: Any,
    convert: Callable[[torch.Tensor], torch.Tensor],
    seen: dict[int, torch.Tensor],
    tensor: Any,
) -> Any:
    # No function nested in map_tensors: one that calls itself is a reference cycle, which would
    # keep every tensor alive until the garbage collector runs.
    kind = type(item)
    if kind in _PLAIN:
        return item
    if isinstance(item, tensor):
        if id(item) not in seen:
            seen[id(item)] = convert(item)
        return seen[id(item)]
    if isinstance(item, (list, tuple)):
        parts = [_mapped(part, convert, seen, tensor) for part in item]
        return kind(*parts) if hasattr(item, "_fields") else kind(parts)
    if isinstance(item, dict):
        return {key: _mapped(part, convert, seen, tensor) for key, part in item.items()}
    if holds_tensors(item):
        return dataclasses.replace(
            item,
            **{key: _mapped(part, convert, seen, tensor) for key, part in _fields_of(item).items()},
        )
    return item


def has_fields(kind: type) -> bool:
    """Whether instances are made of fields in order: a named tuple or a dataclass."""
    return hasattr(kind, "_fields") or dataclasses.is_dataclass(kind)


def holds_tensors(item: Any) -> bool:
    """Whether ``item`` is a dataclass with tensors among its fields."""
    if not dataclasses.is_dataclass(item) or isinstance(item, type):
        return False
    return any(isinstance(part, torch.Tensor) for part in _fields_of(item).values())


def _fields_of(item: Any) -> dict[str, Any]:
    """The fields that the constructor of a dataclass takes."""
    return {f.name: getattr(item, f.name) for f in dataclasses.fields(item) if f.init}


def _walk(name: str, value: Any) -> Iterator[tuple[str, Any]]:
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        for key, part in zip(value._fields, value, strict=True):
            yield from _walk(f"{name}.{key}", part)
    elif holds_tensors(value):
        for key, part in _fields_of(value).items():
            yield from _walk(f"{name}.{key}", part)
    elif isinstance(value, (list, tuple)) and value:
        for index, part in enumerate(value):
            yield from _walk(f"{name}[{index}]", part)
    elif isinstance(value, dict) and value:
        for key, part in value.items():
            yield from _walk(f"{name}[{key!r}]", part)
    else:
        yield name, value
