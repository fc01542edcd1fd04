"""The function under test, together with the VJP that its backward claims."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import torch

from gradlint.numerics.differences import LADDER, significand_bits
from gradlint.numerics.products import all_finite

#: Keeps a direction inside the domain of its input (symmetric matrices stay symmetric).
Projection = Callable[[torch.Tensor], torch.Tensor]


@dataclass
class Map:
    """A function of several tensors and its claimed VJP.

    Args:
        values: the point, one tensor per input.
        outputs: the outputs there.
        evaluate: returns the outputs at other values, or None if it cannot be evaluated there.
        pull_at: returns one gradient per input, at given values for given cotangents; None stands
            for zero (the outputs do not depend on that input).
        rounding: standard deviation of the rounding error of an element of each output, if it is
            known to exceed that of a single rounding (gradients are sums that may cancel).
        project: for each input, the projection that keeps directions inside its domain, or None.
        twin: returns the same function in float64 at the same point, or None if the op does not
            accept float64; None for maps that are in float64 already.
        stands_for: for a twin that omits casts to 16 bits, the coarsest dtype that the op casts to.
    """

    values: list[torch.Tensor]
    outputs: list[torch.Tensor]
    evaluate: Callable[[Sequence[torch.Tensor]], Sequence[torch.Tensor] | None]
    pull_at: Callable[
        [Sequence[torch.Tensor], Sequence[torch.Tensor]], Sequence[torch.Tensor | None]
    ]
    rounding: Sequence[float] | None = None
    project: Sequence[Projection | None] | None = None
    twin: Callable[[], Map | None] | None = None
    stands_for: torch.dtype | None = None

    def projected(self, index: int, direction: torch.Tensor) -> torch.Tensor:
        """``direction`` for input ``index``, projected into the input's domain."""
        project = self.project[index] if self.project else None
        return direction if project is None else project(direction)

    def pull(self, cotangents: Sequence[torch.Tensor]) -> Sequence[torch.Tensor | None]:
        """The claimed VJP at the point itself."""
        return self.pull_at(self.values, cotangents)

    def gradients_at(
        self, values: Sequence[torch.Tensor], cotangents: Sequence[torch.Tensor]
    ) -> list[torch.Tensor]:
        """The claimed VJP at ``values``, with zeros in place of None."""
        return [
            torch.zeros_like(value) if grad is None or grad._is_zerotensor() else grad
            for value, grad in zip(values, self.pull_at(values, cotangents), strict=True)
        ]

    @property
    def elements(self) -> int:
        """Number of elements of all inputs and outputs together."""
        return sum(tensor.numel() for tensor in (*self.values, *self.outputs))


def along(function: Map, index: int) -> Callable[[torch.Tensor], Sequence[torch.Tensor] | None]:
    """``function`` as a function of its input number ``index`` alone."""

    def evaluate(value: torch.Tensor) -> Sequence[torch.Tensor] | None:
        values = list(function.values)
        values[index] = value
        return function.evaluate(values)

    return evaluate


def working_bits(function: Map, x: torch.Tensor) -> int:
    """The fewest significand bits of the input and the outputs: 53, 24, 11 or 8."""
    dtypes = [x.dtype] + [
        y.dtype for y in function.outputs if y.is_floating_point() or y.is_complex()
    ]
    bits = min(significand_bits(dtype) for dtype in dtypes)
    return max(known for known in LADDER if known <= max(bits, min(LADDER)))


def finite_part(function: Map) -> Map:
    """``function`` with the output elements that are not finite at its point (masked with −∞, for
    example) replaced by the constant zero."""
    if all(all_finite(y) for y in function.outputs):
        return function
    masks = [torch.isfinite(y) for y in function.outputs]

    def finite(outputs: Sequence[torch.Tensor]) -> list[torch.Tensor]:
        return [
            torch.where(mask, y, torch.zeros_like(y)) if y.shape == mask.shape else y
            for mask, y in zip(masks, outputs, strict=True)
        ]

    def evaluate(values: Sequence[torch.Tensor]) -> list[torch.Tensor] | None:
        found = function.evaluate(values)
        return None if found is None else finite(found)

    def pull_at(
        values: Sequence[torch.Tensor], cotangents: Sequence[torch.Tensor]
    ) -> Sequence[torch.Tensor | None]:
        return function.pull_at(values, finite(cotangents))

    def twin() -> Map | None:
        found = function.twin() if function.twin is not None else None
        return None if found is None else finite_part(found)

    return replace(
        function, outputs=finite(function.outputs), evaluate=evaluate, pull_at=pull_at, twin=twin
    )
