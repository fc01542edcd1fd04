"""What forward compares tensors with, and how it uses indices: seen while it runs."""

from __future__ import annotations

import math
import os
import sys
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from types import FrameType
from typing import Any

import torch

import gradlint
from gradlint.ops.dispatch_mode import DispatchMode
from gradlint.trace.repeated_writes import accumulates

#: ATen operators (without overloads and trailing underscores) that compare with a number, and the
#: positions of their thresholds.
_COMPARING = {
    "gt": (1,),
    "ge": (1,),
    "lt": (1,),
    "le": (1,),
    "eq": (1,),
    "ne": (1,),
    "clamp": (1, 2),
    "clamp_min": (1,),
    "clamp_max": (1,),
    "hardtanh": (1, 2),
    "threshold": (1,),
}

#: ATen operators that compare with another tensor, beside those above.
_WITH_TENSORS = {"maximum": (1,), "minimum": (1,), "fmax": (1,), "fmin": (1,)}

#: Elements of a tensor of which a copy is kept, at most (heuristic: that of a small sample).
MOST_KEPT = 10_000

#: Steps after which what is bounded by one number in each of them is an iteration (heuristic:
#: sequences of samples are shorter, and solvers take 20 steps or more).
ITERATES = 8

#: ATen operators that test for equality, and those that test for NaN.
_TESTING, _FOR_NAN = ("eq", "ne"), ("isnan", "nan_to_num", "nansum")

#: ATen operators that take a triangle of a matrix.
_TRIANGLES = ("tril", "triu")

#: ATen operators that treat numbers below zero by their signs.
_OF_SIGNS = ("abs", "sign", "sgn", "copysign")

#: ATen operators that put elements in the places that an index says: where it says a place twice,
#: one of two elements is lost, and PyTorch leaves open which.
_OVERWRITING = ("scatter", "index_copy", "index_put", "_index_put_impl", "index_fill", "put")

#: ATen operators that count indices below zero from the end.
_FROM_THE_END = ("index", "index_put", "_index_put_impl", "take", "put")


#: ATen operators that bound values, and those that choose by an order.
_BOUNDING = ("clamp", "clamp_min", "hardtanh", "threshold", "relu", *_WITH_TENSORS)
_ORDERING = ("gt", "ge", "lt", "le")

#: The ATen operator that makes a number of a tensor of one element, which Python may compare then.
_READING = "_local_scalar_dense"

_TORCH, _GRADLINT = (
    os.path.dirname(module.__file__ or "") + os.sep for module in (torch, gradlint)
)

#: What is compared, with what, for which time: the same in every run of forward that takes the same
#: branches.
Place = tuple[str, float, int]


@dataclass(frozen=True)
class Compared:
    """The elements of a tensor that was compared with a number.

    Args:
        threshold: the number.
        name: of the ATen operator.
        tensor: a copy of the tensor.
    """

    threshold: float
    name: str
    tensor: torch.Tensor

    @property
    def bounds(self) -> bool:
        """Whether values are bounded by the threshold, and not only compared with it."""
        return self.name in _BOUNDING

    @property
    def takes_negative(self) -> bool:
        """Whether numbers below zero are bounded on purpose: ``clamp(min=0)`` may be a guard
        against rounding, ``relu`` is none."""
        return self.name == "relu" or (self.bounds and self.threshold < 0)

    @property
    def side(self) -> int:
        """1 where all elements are above the threshold, -1 where none is, 0 otherwise."""
        above = self.tensor > self.threshold
        return int(above.all()) - int(not above.any())

    @property
    def middle(self) -> float:
        """The middle one of the elements."""
        return float(self.tensor.median())


def _masked(args: tuple[Any, ...]) -> bool:
    """Whether places are told by a mask, ``out[keep] = rows``, by which none occurs twice."""
    indices = args[1] if len(args) > 1 and isinstance(args[1], (list, tuple)) else ()
    told = [index for index in indices if isinstance(index, torch.Tensor)]
    return bool(told) and all(index.dtype == torch.bool for index in told)


class Comparisons(DispatchMode):
    """Notes the numbers that tensors are compared with, and which side elements were on.

    Attributes:
        thresholds: the finite ones, in order of appearance.
        one_sided: whether all elements were on one side of a threshold.
        apart: whether all elements of a tensor were on one side of those of another one.
        compared: what was compared with each of them, with zero by ``relu``, and maybe by Python
            with a number in the code that reads a tensor of one element.
        tested: tensors with the numbers that forward tests for equality with them, and with NaN
            where it tests for that.
        triangles: tensors of which forward takes a triangle itself.
        signed: tensors of which forward takes absolute values or signs.
        overwrites: whether elements were put in places that an index tells.
        from_the_end: whether integers reached an operator that takes negative indices.
    """

    def __init__(self) -> None:
        super().__init__()
        self.thresholds: list[float] = []
        self.one_sided = False
        self.apart = False
        self.compared: dict[Place, Compared] = {}
        self.tested: list[tuple[torch.Tensor, float]] = []
        self.triangles: list[torch.Tensor] = []
        self.signed: list[torch.Tensor] = []
        self.overwrites = False
        self.from_the_end = False

    def guards(self) -> dict[float, float]:
        """Positive numbers that bound tensors, none of whose elements is as small → the least of
        those: what guards a logarithm or a quotient against zero."""
        found: dict[float, float] = {}
        for item in self.compared.values():
            if item.bounds and item.threshold > 0.0 and item.side == 1:
                least = float(item.tensor.min())
                found[item.threshold] = min(least, found.get(item.threshold, least))
        return found

    def bounds_of_steps(self) -> set[float]:
        """The numbers that bound each step of an iteration: beyond them it finds no solution."""
        times = Counter(threshold for name, threshold, _ in self.compared if name in _BOUNDING)
        return {threshold for threshold, count in times.items() if count > ITERATES}

    def __torch_dispatch__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Any = None
    ) -> Any:
        kwargs = kwargs or {}
        packet = getattr(func, "overloadpacket", None)
        name = getattr(packet, "__name__", "").rstrip("_")
        if name in _COMPARING:
            self._compared(name, args[0], _numbers(args, kwargs, _COMPARING[name]))
        elif name == "relu":
            self._keep(name, args[0], 0.0)
        elif name == _READING and args[0].is_floating_point():
            for number in _numbers_of_code():
                self._keep(name, args[0], number)
        if name in _COMPARING or name in _WITH_TENSORS:
            places = _COMPARING.get(name) or _WITH_TENSORS[name]
            self._compared_with_tensors(args[0], _given(args, kwargs, places))
        if name in _TESTING:
            self._tested(args[0], list(_numbers(args, kwargs, (1,))))
        elif name in _FOR_NAN:
            self._tested(args[0], [math.nan])
        if name in _TRIANGLES:
            self.triangles.append(args[0].detach().clone())
        if name in _OF_SIGNS and 0 < args[0].numel() <= MOST_KEPT:
            self.signed.append(args[0].detach().clone())
        if name in _FROM_THE_END:
            self.from_the_end = True
        if name in _OVERWRITING and not accumulates(args, kwargs) and not _masked(args):
            self.overwrites = True
        return func(*args, **kwargs)

    def _compared(self, name: str, tensor: Any, thresholds: Iterator[float]) -> None:
        if not isinstance(tensor, torch.Tensor) or not tensor.is_floating_point():
            return
        for threshold in thresholds:
            if threshold not in self.thresholds:
                self.thresholds.append(threshold)
            above = tensor.detach() > threshold
            self.one_sided |= tensor.numel() > 0 and bool(above.all() | ~above.any())
            self._keep(name, tensor, threshold)

    def _keep(self, name: str, tensor: torch.Tensor, threshold: float) -> None:
        if name not in (*_BOUNDING, *_ORDERING, _READING) or not 0 < tensor.numel() <= MOST_KEPT:
            return
        times = 0
        while (place := (name, threshold, times)) in self.compared:
            times += 1
        copy = tensor.detach().clone()
        self.compared[place] = Compared(threshold, name, copy)

    def _tested(self, tensor: Any, values: list[float]) -> None:
        if isinstance(tensor, torch.Tensor) and tensor.is_floating_point() and values:
            self.tested.append((tensor.detach().clone(), values[0]))

    def _compared_with_tensors(self, tensor: Any, others: list[Any]) -> None:
        for other in others:
            if all(isinstance(t, torch.Tensor) and t.is_floating_point() for t in (tensor, other)):
                above = tensor.detach() > other.detach()
                self.apart |= above.numel() > 1 and bool(above.all() | ~above.any())


def _given(args: tuple[Any, ...], kwargs: dict[str, Any], positions: tuple[int, ...]) -> list[Any]:
    return [args[k] for k in positions if k < len(args)] + list(kwargs.values())


def _numbers(
    args: tuple[Any, ...], kwargs: dict[str, Any], positions: tuple[int, ...]
) -> Iterator[float]:
    for value in _given(args, kwargs, positions):
        if type(value) in (int, float) and math.isfinite(value):
            yield float(value)


def _numbers_of_code() -> Iterator[float]:
    """Positive numbers in the code of the user's that runs, which may be thresholds; not whole
    ones, which rarely are."""
    frame: FrameType | None = sys._getframe(2)
    while frame is not None and frame.f_code.co_filename.startswith((_TORCH, _GRADLINT)):
        frame = frame.f_back
    for constant in frame.f_code.co_consts if frame is not None else ():
        if type(constant) is float and constant > 0.0 and not constant.is_integer():
            yield constant
