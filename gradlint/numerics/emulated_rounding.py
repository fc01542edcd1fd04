"""Run a float64 map as if it rounded like a lower dtype.

Under :class:`Rounding` every operation of PyTorch runs on wide tensors whose values lie on the grid
of the narrow dtype. Each result is rounded to that grid stochastically (up or down, with odds that
make the mean right), so that repeated runs scatter as rounding in the narrow dtype makes them
scatter. This is Monte Carlo arithmetic (Parker 1997; Denis, de Oliveira Castro & Petit 2016,
"Verificarlo"). Exact results stay exact: masks, ties, gathered elements.

PyTorch's own kernels round internally too, and by different amounts, depending on whether they
accumulate in float32. So each is run on the narrow operands as well, and if its own error exceeds
one rounding, that error with a random sign is applied instead. Errors that only the op under test
makes get no such allowance. See gradlint/docs/numerics.md, section "Float64 twin".
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from typing import Any, TypeVar

import torch

from gradlint.numerics.directions import cotangent
from gradlint.numerics.map import Map
from gradlint.numerics.products import unit_roundoff, widened
from gradlint.ops.dispatch_mode import DispatchMode

#: Operations emulated in one run at most; the rest of a longer run is exact, so that a loop of very
#: many steps must be as accurate as a shorter one (heuristic: 100 operations take 10 ms).
LONGEST_RUN = 5000

#: If a wide operand lies off the narrow grid by more than this share of the grid's spacing, code
#: that is not emulated has computed it (heuristic).
OFF_GRID = 1e-3

#: Narrow dtypes of which a complex version exists.
_COMPLEX = (torch.float16, torch.float32)

_T = TypeVar("_T")

#: Operations emulated in all repeated runs together (heuristic: about 3 s). Longer runs are
#: repeated less often, but at least this often.
OPERATIONS = 30000
FEWEST_RUNS = 4

#: A function that computes in float64 must react to moves of this share of the low dtype's ε; if it
#: does not, it computes in the low dtype itself.
FINE_MOVE = 1.0 / 8.0


class Rounding(DispatchMode):
    """Emulates ``narrow`` in computations that are done in ``wide``.

    Args:
        wide, narrow: real floating dtypes; complex tensors follow.
        generator: source of the random numbers, on the CPU; the op's own stay untouched.
        noise: width of the noise in units of that of stochastic rounding. Above 1, inexact results
            scatter over several neighbours, which shows what flips branches.

    Attributes:
        unseen: whether code ran that is not emulated: an operand lay off the grid of ``narrow`` (so
            a kernel of the op itself or numpy computed it), another library's operation ran, or
            memory was made a tensor.
        calls: number of operations emulated.
    """

    def __init__(
        self,
        wide: torch.dtype,
        narrow: torch.dtype,
        generator: torch.Generator,
        noise: float = 1.0,
    ) -> None:
        super().__init__()
        self.generator = generator
        self.noise = noise
        self.unseen = False
        self.calls = 0
        self.grids: dict[torch.dtype, torch.dtype] = {
            wide: narrow,
            wide.to_complex(): narrow.to_complex() if narrow in _COMPLEX else torch.complex64,
        }

    def __torch_dispatch__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Any = None
    ) -> Any:
        kwargs = kwargs or {}
        if self.calls >= LONGEST_RUN:
            return func(*args, **kwargs)
        self.calls += 1
        if _points_at_memory(func):
            # Whoever asks for that computes there by himself, as Triton's interpreter does. What
            # has been computed there so far was stored in the narrow dtype.
            self.unseen = True
            return self._rounded(func(*args, **kwargs), None, writes=True)
        lower = self._lower(func, args, kwargs)
        returned = func(*args, **kwargs)
        if _is_view(func):
            return returned
        return self._rounded(returned, lower, _writes(func))

    def _rounded(self, returned: Any, lower: Any, writes: bool) -> Any:
        """What an operation ``returned``, rounded; ``lower`` is what it returns for narrow
        operands, None where that is not known."""
        if isinstance(returned, (list, tuple)):
            fits = isinstance(lower, (list, tuple)) and len(lower) == len(returned)
            return type(returned)(
                self._rounded(part, lower[k] if fits else None, writes)
                for k, part in enumerate(returned)
            )
        if not isinstance(returned, torch.Tensor) or returned.dtype not in self.grids:
            return returned
        if returned.layout != torch.strided or not returned.numel() or returned._is_zerotensor():
            return returned  # sparse, empty, or without memory that could be read
        rounded = self._round(returned, lower)
        return returned.copy_(rounded) if writes and rounded is not returned else rounded

    def _lower(self, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """What the kernel returns for narrow operands; None if it does not run on them, or if the
        result is arbitrary (random numbers, uninitialised memory, other libraries' operations)."""
        foreign = func.namespace not in ("aten", "prims", "prim")
        if foreign:
            self.unseen = True
        tags = getattr(func, "tags", ())
        if foreign or _is_view(func) or torch.Tag.nondeterministic_seeded in tags:
            return None
        if _lifts(func):  # from Python numbers, or from what numpy has computed
            self._narrowed(args)
            return None
        if "empty" in func.name():
            return None
        try:
            named = {name: self._narrowed(value) for name, value in kwargs.items()}
            return func(*self._narrowed(args), **named)
        except Exception:  # not implemented for this dtype, or it does not accept copies
            return None

    def _narrowed(self, value: Any) -> Any:
        """An argument of an operation, or several: tensors and dtypes become narrow."""
        if type(value) in (list, tuple):
            return type(value)(map(self._narrowed, value))
        if isinstance(value, torch.dtype):
            return self.grids.get(value, value)
        if not isinstance(value, torch.Tensor):
            return value
        if value._is_zerotensor():
            return torch.zeros_like(value, dtype=self.grids.get(value.dtype, value.dtype))
        if value.dtype not in self.grids:
            return value.clone() if value.layout == torch.strided else value
        small = value.to(self.grids[value.dtype])
        if value.numel() > 1 and not self.unseen and value.layout == torch.strided:
            off = (small.to(value.dtype) - value).abs()
            spacing = torch.finfo(small.dtype).eps * value.abs()
            self.unseen = bool((off > OFF_GRID * spacing).any())
        return small

    def _round(self, exact: torch.Tensor, small: Any) -> torch.Tensor:
        if exact.is_complex():
            parts = torch.view_as_real(exact.resolve_conj())
            fits = isinstance(small, torch.Tensor) and small.is_complex()
            other = torch.view_as_real(small.resolve_conj()) if fits else None
            real = self.grids[exact.dtype].to_real()
            return torch.view_as_complex(self._round_real(parts, other, real).contiguous())
        return self._round_real(exact, small, self.grids[exact.dtype])

    def _round_real(self, exact: torch.Tensor, small: Any, grid: torch.dtype) -> torch.Tensor:
        known = isinstance(small, torch.Tensor) and small.shape == exact.shape
        if known and small.is_floating_point() and small.dtype != exact.dtype:
            grid = small.dtype
        nearest = exact.to(grid).to(exact.dtype)
        kept = nearest == exact
        if bool(kept.all()) and (not known or torch.equal(small.to(exact.dtype), exact)):
            return exact
        spacing = _spacing(exact, grid)
        # Float32 draws suffice for the odds, and cost half.
        draws = torch.rand(tuple(exact.shape), generator=self.generator) - 0.5
        noise = draws.to(exact) * spacing * self.noise
        if known:
            error = (small.to(exact.dtype) - exact).abs()
            error = torch.where(torch.isnan(error), torch.inf, error)
            larger = error > spacing
            if bool(larger.any()):
                noise = torch.where(larger, torch.sgn(noise) * error * self.noise, noise)
                kept &= ~larger
        noisy = (exact + noise).to(grid).to(exact.dtype)
        return torch.where(kept | ~torch.isfinite(exact), exact, noisy)


def _spacing(value: torch.Tensor, grid: torch.dtype) -> torch.Tensor:
    """Distance between neighbouring numbers of the dtype ``grid`` at each element."""
    _, exponent = torch.frexp(value)
    info = torch.finfo(grid)
    spacing = torch.ldexp(torch.full_like(value, info.eps), exponent - 1)
    return spacing.clamp_min(info.smallest_normal * info.eps)


@cache
def _is_view(func: Any) -> bool:
    returns = func._schema.returns
    aliases = [item.alias_info for item in returns if item.alias_info is not None]
    return bool(aliases) and not any(item.is_write for item in aliases) and not _lifts(func)


@cache
def _writes(func: Any) -> bool:
    returns = func._schema.returns
    return any(item.alias_info is not None and item.alias_info.is_write for item in returns)


@cache
def _points_at_memory(func: Any) -> bool:
    """Whether ``func`` computes nothing: it lets a tensor show memory that is there already."""
    return func.name().startswith("aten::set_")


@cache
def _lifts(func: Any) -> bool:
    """Whether ``func`` makes a tensor from Python numbers, which the narrow dtype would round."""
    return func.name() in ("aten::lift_fresh", "aten::lift")


class RoundedRuns:
    """Runs of ``function`` (in float64) with the rounding of ``dtype`` emulated.

    If part of the computation cannot be emulated (a kernel of the op itself, numpy), or the op does
    not run under emulation, inputs and cotangents are moved by single units of the dtype as well,
    which shows how that part amplifies rounding.

    Args:
        generator: source of the random numbers, on the CPU.

    Attributes:
        unseen: whether part of the computation cannot be emulated.
        operations: number of operations in the longest run so far.
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
            vs = [self._moved_by_units(v) for v in cotangents] if self.unseen else cotangents
            return self.function.gradients_at(self._values(), vs)

        return self._run(pull, noise)

    def outputs(self) -> Sequence[torch.Tensor] | None:
        """The outputs, with fresh rounding; None if the function cannot be evaluated."""
        return self._run(lambda: self.function.evaluate(self._values()))

    def affordable(self, runs: int) -> int:
        """``runs``, or fewer if each run is long."""
        return max(FEWEST_RUNS, min(runs, OPERATIONS // max(1, self.operations)))

    def compute_finer(self) -> bool:
        """Whether the outputs react to moves far below the resolution of the low dtype, or, if they
        do not, whether the function is constant, that is, its gradient is zero too."""
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
            except Exception:  # the op does something that does not run under emulation
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
        return [self._moved_by_units(x) for x in values] if self.unseen else values

    def _moved_by_units(self, value: torch.Tensor) -> torch.Tensor:
        if not (value.is_floating_point() or value.is_complex()):
            return value
        steps = torch.randint(-1, 2, tuple(value.shape), generator=self.generator)
        return value * (1.0 + unit_roundoff(self.dtype) * steps.to(value))
