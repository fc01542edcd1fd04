"""A map in float64, run as if it rounded like a lower dtype."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TypeVar

import torch

from gradlint.numerics._directions import cotangent
from gradlint.numerics._emulate import Rounding
from gradlint.numerics._map import Map
from gradlint.numerics._products import unit_roundoff, widened

_T = TypeVar("_T")

#: Operations emulated in repeated runs, at most (heuristic: some 3 s); runs of very many operations
#: are repeated less often, but this often at least.
OPERATIONS = 30000
FEWEST_RUNS = 4

#: The function must show moves of this share of the low dtype's ε: else it computes in that too.
FINE_MOVE = 1.0 / 8.0


class RoundedRuns:
    """Runs of ``function`` (in float64) with the rounding of ``dtype`` emulated.

    Where part of the computation is out of sight (a kernel of the op's own, numpy), or the op
    minds being watched, inputs and cotangents are moved by single units of the dtype besides: the
    conditioning of what can't be seen.

    Args:
        generator: source of the random numbers, on the CPU.

    Attributes:
        unseen: part of the computation is out of sight.
        operations: of the longest run so far.
    """

    def __init__(self, function: Map, dtype: torch.dtype, generator: torch.Generator) -> None:
        self.function = function
        self.dtype = dtype
        self.generator = generator
        self.unseen = False
        self.operations = 0
        self._watched = True

    def gradients(
        self, cotangents: Sequence[torch.Tensor], noise: float = 1.0
    ) -> list[torch.Tensor]:
        """The gradients under ``cotangents``, with fresh rounding."""

        def pull() -> list[torch.Tensor]:
            vs = [self._beside(v) for v in cotangents] if self.unseen else cotangents
            return self.function.gradients_at(self._values(), vs)

        return self._run(pull, noise)

    def outputs(self) -> Sequence[torch.Tensor] | None:
        """The outputs, with fresh rounding; None where the function can't be evaluated."""
        return self._run(lambda: self.function.evaluate(self._values()))

    def affordable(self, runs: int) -> int:
        """``runs``, or fewer where each is long."""
        return max(FEWEST_RUNS, min(runs, OPERATIONS // max(1, self.operations)))

    def compute_finer(self) -> bool:
        """Whether moves far below the resolution of the low dtype show in the outputs; or, where
        the function is constant, whether its gradient says so too."""
        nudged = []
        for x in self.function.values:
            signs = 2 * torch.randint(0, 2, tuple(x.shape), generator=self.generator) - 1
            nudged.append(x * (1.0 + FINE_MOVE * unit_roundoff(self.dtype) * signs.to(x)))
        outputs = self.function.evaluate(nudged)
        if outputs is None or any(
            not torch.equal(a, b) for a, b in zip(outputs, self.function.outputs, strict=True)
        ):
            return True
        vs = [cotangent(y, self.generator) for y in self.function.outputs]
        try:
            gradients = self.function.gradients_at(self.function.values, vs)
        except Exception:  # the user's backward may raise anything
            return False
        return not any(bool(widened(gradient).any()) for gradient in gradients)

    def _run(self, action: Callable[[], _T], noise: float = 1.0) -> _T:
        if self._watched:
            try:
                with self._rounding(noise):
                    return action()
            except Exception:  # whatever an op does that can't be watched
                self._watched, self.unseen = False, True
        return action()

    @contextmanager
    def _rounding(self, noise: float) -> Iterator[None]:
        with Rounding(torch.float64, self.dtype, self.generator, noise) as mode:
            yield
        self.unseen |= mode.unseen
        self.operations = max(self.operations, mode.calls)

    def _values(self) -> list[torch.Tensor]:
        values = self.function.values
        return [self._beside(x) for x in values] if self.unseen else values

    def _beside(self, value: torch.Tensor) -> torch.Tensor:
        if not (value.is_floating_point() or value.is_complex()):
            return value
        steps = torch.randint(-1, 2, tuple(value.shape), generator=self.generator)
        return value * (1.0 + unit_roundoff(self.dtype) * steps.to(value))
