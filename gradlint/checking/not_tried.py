"""Kinds of arguments that no sample gives to an op."""

from __future__ import annotations

import inspect
from collections.abc import Iterator, Sequence
from typing import Any

from torch import nn

from gradlint.base.text import short_text
from gradlint.model.op import Op
from gradlint.model.sample import Sample
from gradlint.trace.coverage import Coverage

#: What is said where no sample has complex numbers.
COMPLEX = "complex"

#: Arguments that say where and in which format results are stored: settings ask for these.
_STORAGE = frozenset(
    {"device", "dtype", "generator", "layout", "memory_format", "name", "out", "requires_grad"}
)

#: Names in the code of an op that was written for complex numbers, too.
_COMPLEX = frozenset(
    {
        *("is_complex", "conj", "conj_physical", "resolve_conj"),
        *("view_as_real", "view_as_complex", "mH"),
    }
)

#: Those that only such code has, whatever complex numbers it makes itself.
_ASKS = frozenset({"is_complex", "resolve_conj"})

_PARTS = frozenset({"real", "imag"})

#: Names in code that takes real numbers, and is complex in between only.
_REAL = frozenset({"rfft", "rfft2", "rfftn", "irfft", "irfft2", "irfftn"})

#: Names in code that makes complex numbers of real ones.
_MAKES_COMPLEX = frozenset(
    {"complex", "polar", "eig", "eigvals", "complex64", "complex128", "cfloat", "cdouble"}
)

_TRANSFORMS = frozenset({"fft", "fft2", "fftn", "ifft", "ifft2", "ifftn", "stft", "istft", "hfft"})

#: Modules that compute something else in training than in evaluation.
_TWO_MODES = (
    *(nn.Dropout, nn.Dropout1d, nn.Dropout2d, nn.Dropout3d, nn.AlphaDropout),
    *(nn.FeatureAlphaDropout, nn.BatchNorm1d, nn.BatchNorm2d, nn.BatchNorm3d, nn.SyncBatchNorm),
    nn.RReLU,
)

#: Numbers by which multiplying, adding or dividing changes nothing, so that an argument that was
#: left out makes no difference.
_NEUTRAL = (0, 1)

_EMPTY = inspect.Parameter.empty


def not_tried(op: Op, samples: Sequence[Sample], coverage: Coverage) -> list[str]:
    """What no sample gives to ``op``: ``stride != 1``, ``complex``, ``evaluation mode``.

    Args:
        op: the operator.
        samples: all that it is checked on.
        coverage: knows its code, after at least one call, and what checks tried beside the samples.
    """
    found = [text for name, text in _of_arguments(op, samples) if name not in coverage.moved]
    found += [text for name, text in _of_constructor(op) if name not in coverage.moved]
    tensors = [tensor for sample in samples for _, tensor in sample.named_tensors(op.signature)]
    known = COMPLEX in coverage.moved or any(tensor.is_complex() for tensor in tensors)
    if not known and for_complex(coverage):
        found.append(COMPLEX)
    if op.module is not None and _has_two_modes(op.module, coverage):
        found.append("evaluation mode" if op.module.training else "training mode")
    return found


def for_complex(coverage: Coverage, *, transforms: bool = True) -> bool:
    """Whether the code of an op was written for complex numbers, too.

    Args:
        transforms: whether code with Fourier transforms counts, which may be complex in between.
    """
    if coverage.mentions(_REAL) or (not transforms and coverage.mentions(_TRANSFORMS)):
        return False
    makes = _MAKES_COMPLEX | _TRANSFORMS
    made = coverage.has_imaginary_numbers() or coverage.mentions(_MAKES_COMPLEX)
    if made and coverage.mentions(_PARTS) and not coverage.mentions(_ASKS):
        return False  # of real numbers, and the gradient is made real again
    parts = coverage.takes_parts() and not coverage.mentions(makes)
    return coverage.mentions(_COMPLEX) or parts


def _of_arguments(op: Op, samples: Sequence[Sample]) -> Iterator[tuple[str, str]]:
    kinds = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
    parameters = list(op.signature.parameters.values()) if op.signature is not None else []
    for place, parameter in enumerate(parameters):
        if parameter.kind in kinds or parameter.name in _STORAGE:
            continue
        values = [_value(sample, place, parameter) for sample in samples]
        text = _never_left(parameter.name, parameter.default, values)
        if text:
            yield parameter.name, text


def _value(sample: Sample, place: int, parameter: inspect.Parameter) -> Any:
    if parameter.kind is not inspect.Parameter.KEYWORD_ONLY and place < len(sample.args):
        return sample.args[place]
    return sample.kwargs.get(parameter.name, parameter.default)


def _never_left(name: str, default: Any, values: Sequence[Any]) -> str:
    """``stride != 1`` if all ``values`` are the default, or one of :data:`_NEUTRAL`."""
    if not values:
        return ""
    only = values[0]
    if not all(_same(value, only) for value in values):
        return ""
    if type(only) is bool:
        return f"{name}={not only}"
    neutral = type(only) in (int, float) and only in _NEUTRAL
    if only is _EMPTY or not (neutral or _same(only, default)):
        return ""
    return f"{name} != {short_text(only, 20)}"


def _same(first: Any, second: Any) -> bool:
    """Whether two arguments are equal and of plain types."""
    if first is None or second is None or first is _EMPTY:
        return first is second
    plain = (bool, int, float, complex, str, tuple, list)
    if type(first) is not type(second) or not isinstance(first, plain):
        return False
    if isinstance(first, (tuple, list)):
        return len(first) == len(second) and all(map(_same, first, second))
    return bool(first == second)


def _of_constructor(op: Op) -> Iterator[tuple[str, str]]:
    """The same for arguments of a module that gradlint constructed."""
    if op.module is None or not op.constructor:
        return
    try:
        parameters = inspect.signature(type(op.module)).parameters
    except (TypeError, ValueError):
        return
    for name, parameter in parameters.items():
        if name in _STORAGE or parameter.default is _EMPTY:
            continue
        text = _never_left(name, parameter.default, [op.constructor.get(name, parameter.default)])
        if text:
            yield name, text


def _has_two_modes(module: nn.Module, coverage: Coverage) -> bool:
    return coverage.mentions(frozenset({"training"})) or any(
        isinstance(part, _TWO_MODES) for part in module.modules()
    )
