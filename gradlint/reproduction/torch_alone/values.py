"""Gradients against central differences, of first and second order and forward mode."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import torch

from gradlint.reproduction.torch_alone.case import (
    Case,
    Defect,
    compared,
    copied,
    each_compared,
    mapped,
    precision,
    pulled,
    seed_all,
    shown,
    tensors,
)


class Slope(NamedTuple):
    """A derivative as forward has it: by a central difference, from below and above, and how far
    off these may be."""

    central: float
    low: float
    high: float
    bar: float
    step: float


#: Elements of one input whose derivative is measured, at most.
MOST_ELEMENTS = 400


def slope(
    case: Case,
    vs: Sequence[torch.Tensor | None],
    position: int,
    place: int,
    along: complex = 1.0,
) -> Slope | None:
    """The derivative of the weighed outputs towards one element of an input; None where the
    function is not finite on both sides."""
    x = case.inputs[position].detach()
    low = x.dtype in (torch.float32, torch.complex64)
    size = max(abs(x.reshape(-1)[place].item()), 1.0)
    # Where truncation and rounding are of one size: the cube root of the spacing of numbers.
    h = (2.0**-8 if low else 2.0**-17) * size
    eps = 1.2e-7 if low else 2.3e-16

    def at(move: float) -> tuple[float, float, float]:
        values = list(case.inputs)
        changed = x.clone(memory_format=torch.contiguous_format)
        flat = changed.view(-1)
        flat[place] += move * along
        moved = flat[place].item() - x.reshape(-1)[place].item()
        values[position] = changed
        total, terms = case.weighed(values, vs)
        return abs(moved) if move >= 0 else -abs(moved), total, terms

    (_, middle, terms), (a, above, more), (b, below, less) = at(0.0), at(h), at(-h)
    (c, nearer_above, _), (d, nearer_below, _) = at(h / 2), at(-h / 2)
    numbers = (middle, above, below, nearer_above, nearer_below)
    if not all(map(math.isfinite, numbers)) or not a or not b or not c or not d:
        return None
    central = (nearer_above - nearer_below) / (c - d)
    coarse = (above - below) / (a - b)
    sides = [(nearer_above - middle) / c, (nearer_below - middle) / d]
    noise = 16 * eps * max(terms, more, less) / h
    bar = 4 * abs(central - coarse) + noise + (1e-3 if low else 1e-6) * abs(central)
    return Slope(central, min(sides), max(sides), bar, h / 2)


def kinked(found: Slope) -> bool:
    """Whether the derivatives from below and from above differ."""
    return found.high - found.low > 1e-2 * max(abs(found.high), abs(found.low), 1e-6) + found.bar


def expectation(found: Slope) -> tuple[str, str]:
    """The derivative, and where it comes from, in words."""
    if kinked(found):
        words = f"between {shown(found.low)} and {shown(found.high)}"
        return words, f"one-sided differences of forward, step {found.step:.1e}"
    return shown(found.central), f"central difference of forward, step {found.step:.1e}"


def places(case: Case, position: int, hint: Sequence[int] | None) -> list[int]:
    """The elements to look at: the hinted one first."""
    x = case.inputs[position]
    first = []
    if hint is not None and len(hint) == x.dim() and all(map(int.__lt__, hint, x.shape)):
        flat = 0
        for size, index in zip(x.shape, hint):
            flat = flat * size + index
        first = [flat]
    return [*first, *(k for k in range(min(x.numel(), MOST_ELEMENTS)) if k not in first)]


def wrong_gradient(
    case: Case,
    name: str = "",
    hint: Sequence[int] | None = None,
    where: str = "the gradient of",
) -> Defect | None:
    """The element whose gradient is farthest from the derivative of forward."""
    leaves, outputs = case.run()
    vs = case.cotangents(outputs)
    gradients = pulled(outputs, leaves, vs)
    worst, found = 0.0, None
    for position, gradient in enumerate(gradients):
        of = case.names[position]
        if name and of != name:
            continue
        x = case.inputs[position]
        g = torch.zeros_like(x) if gradient is None else gradient.detach()
        for place in places(case, position, hint):
            for along in (1.0, 1j) if x.is_complex() else (1.0,):
                number = g.reshape(-1)[place].item()
                got = number.imag if along == 1j else number.real
                measured = slope(case, vs, position, place, along) if math.isfinite(got) else None
                if measured is None:
                    continue
                off = max(measured.low - got, got - measured.high, 0.0)
                share = 1e-2 if x.dtype in (torch.float32, torch.complex64) else 1e-4
                size = max(abs(got), abs(measured.low), abs(measured.high))
                if off > max(2 * measured.bar, share * size) and off > worst:
                    index = torch.unravel_index(torch.tensor(place), x.shape)
                    expected, source = expectation(measured)
                    told = "None, which counts as 0" if gradient is None else shown(got)
                    part = ", imaginary part" if along == 1j else ""
                    what = f"{where} `{of}` is wrong{part}"
                    worst = off
                    found = Defect(what, expected, told, source, tuple(map(int, index)), of)
    return found


def not_finite_gradient(case: Case, name: str = "") -> Defect | None:
    """An element of a gradient that is NaN or infinite where the derivative is finite."""
    leaves, outputs = case.run()
    vs = case.cotangents(outputs)
    for position, gradient in enumerate(pulled(outputs, leaves, vs)):
        of = case.names[position]
        if gradient is None or (name and of != name):
            continue
        for place in torch.nonzero(~torch.isfinite(gradient.reshape(-1).abs()))[:, 0].tolist():
            measured = slope(case, vs, position, place)
            expected, source = "a finite number", "outputs are finite here"
            if measured is not None:
                expected, source = expectation(measured)
            elif not all(bool(torch.isfinite(y.detach().abs()).all()) for y in outputs):
                continue
            index = tuple(map(int, torch.unravel_index(torch.tensor(place), gradient.shape)))
            got = shown(gradient.reshape(-1)[place].item())
            return Defect(f"the gradient of `{of}` is not finite", expected, got, source, index, of)
    return None


def not_finite_output(case: Case) -> Defect | None:
    """An element of an output that is NaN or infinite at finite inputs."""
    _, outputs = case.run(grad=False)
    _, wide = as_double(case).run(grad=False)
    for number, (y, exact) in enumerate(zip(outputs, wide)):
        if not (y.is_floating_point() or y.is_complex()):
            continue
        bad = torch.nonzero(~torch.isfinite(y.reshape(-1).abs()))[:, 0].tolist()
        for place in bad:
            index = tuple(map(int, torch.unravel_index(torch.tensor(place), y.shape)))
            there = exact.reshape(-1)[place].item() if exact.shape == y.shape else math.nan
            finite = isinstance(there, float) and math.isfinite(there)
            expected = shown(there) if finite and y.dtype != exact.dtype else "a finite number"
            source = (
                "the same operator in float64"
                if y.dtype != exact.dtype
                else "all inputs are finite"
            )
            got = shown(y.reshape(-1)[place].item())
            return Defect(f"output {number} is not finite", expected, got, source, index)
    return None


def as_double(case: Case) -> Case:
    """The same call with every floating tensor in float64."""

    def wide(tensor: torch.Tensor) -> torch.Tensor:
        if tensor.is_complex():
            return tensor.to(torch.complex128)
        return tensor.double() if tensor.is_floating_point() else tensor

    return case.changed(wide)


def wrong_along_directions(case: Case) -> Defect | None:
    """A direction along which all elements of an input move, and the gradient is not the derivative
    of forward: at ties, no single element need show it."""
    leaves, outputs = case.run()
    vs = case.cotangents(outputs)
    gradients = pulled(outputs, leaves, vs)
    for position, (name, g) in enumerate(zip(case.names, gradients)):
        x = case.inputs[position].detach()
        if g is None or x.is_complex() or not x.numel():
            continue
        for words, u in (("all", torch.ones_like(x)), ("all", -torch.ones_like(x))):
            along = Case(
                lambda given: case.call(given[0](given[1])),
                (_mover(case, position, u), torch.zeros((), dtype=x.dtype, requires_grad=True)),
                ["t"],
                case.seed,
            )
            measured = slope(along, vs, 0, 0)
            got = float((g.detach() * u).sum())
            if measured is None or kinked(measured) or not math.isfinite(got):
                continue
            size = max(abs(got), abs(measured.central))
            if abs(got - measured.central) > max(2 * measured.bar, 1e-4 * size):
                what = f"the gradient of `{name}`, along {words} elements at once, is wrong"
                return Defect(what, *expectation(measured)[:1], shown(got), "central difference")
    return None


def _mover(case: Case, position: int, u: torch.Tensor) -> Any:
    def moved(t: torch.Tensor) -> Any:
        x = case.inputs[position]
        return mapped(case.given, lambda y: x.detach() + t * u if y is x else y.detach())

    return moved


def twice(case: Case) -> Case:
    """The operator that maps inputs and grad_output to the gradients, which has the second
    derivatives of `case` for its own gradient."""
    _, outputs = case.run()
    vs = [None if v is None else v.requires_grad_() for v in case.cotangents(outputs)]
    is_input = [any(t is x for x in case.inputs) for t in tensors(case.given)]

    def call(given: Any) -> Any:
        passed, weights = given
        live: dict[int, torch.Tensor] = {}
        for tensor, flag in zip(tensors(passed), is_input):
            if flag:
                own = tensor if tensor.requires_grad else tensor.detach().requires_grad_()
                live.setdefault(id(tensor), own)
        with torch.enable_grad():
            found = list(tensors(case.call(mapped(passed, lambda t: live.get(id(t), t)))))
            pairs = [(y, v) for y, v in zip(found, weights) if v is not None and y.requires_grad]
            gradients = torch.autograd.grad(
                [y for y, _ in pairs],
                list(live.values()),
                [v for _, v in pairs],
                create_graph=True,
                allow_unused=True,
            )
        return [torch.zeros_like(x) if g is None else g for x, g in zip(live.values(), gradients)]

    numbers = [k for k, v in enumerate(vs) if v is not None]
    outputs_named = [f"grad_output of output {k}" for k in numbers]
    names = [*case.names, *(outputs_named if len(numbers) > 1 else ["grad_output"])]
    return Case(call, (case.given, vs), names, case.seed, every_output=True)


def wrong_second_derivative(case: Case, name: str = "") -> Defect | None:
    """The element whose second derivative is farthest from the derivative of backward."""
    double = twice(case)
    _, gradients = double.run()
    if any(type(g.grad_fn).__name__ in ("Error", "DelayedError") for g in gradients):
        return None  # refused openly, by once_differentiable
    found = wrong_gradient(double, name, None, "the second derivative towards")
    if found is not None:
        found.source = found.source.replace("of forward", "of backward")
    return found


def wrong_jvp(case: Case) -> Defect | None:
    """The output whose forward-mode derivative is farthest from a difference of forward."""
    generator = torch.Generator().manual_seed(case.seed)
    us = [torch.randn(x.shape, generator=generator, dtype=x.dtype) for x in case.inputs]
    low = any(x.dtype == torch.float32 for x in case.inputs)
    h = 2.0**-8 if low else 2.0**-17
    sides = []
    for move in (h, -h):
        values = [x.detach() + move * u for x, u in zip(case.inputs, us)]
        sides.append(case.run(values, grad=False)[1])
    seed_all(case.seed)
    with torch.autograd.forward_ad.dual_level():
        duals = {
            id(x): torch.autograd.forward_ad.make_dual(copied(x), u)
            for x, u in zip(case.inputs, us)
        }
        outputs = case.call(mapped(case.given, lambda t: duals.get(id(t), t)))
        tangents = [torch.autograd.forward_ad.unpack_dual(y).tangent for y in tensors(outputs)]
    for number, (above, below, got) in enumerate(zip(*sides, tangents)):
        if got is None or not above.is_floating_point():
            continue
        found = compared(
            got,
            (above - below) / (2 * h),
            f"the forward-mode derivative (jvp) of output {number} is wrong",
            f"central difference of forward, step {h:.1e}",
            roundings=(1e-2 if low else 1e-5) / precision(got),
        )
        if found is not None:
            return found
    return None


def low_precision(case: Case, roundings: float = 4.0) -> Defect | None:
    """A gradient that is farther from that in float64 than its dtype explains. No number of
    grad_output is negative, so that sums grow and what they lose shows."""
    leaves, outputs = case.run()
    vs = [None if v is None else v.abs() for v in case.cotangents(outputs)]
    gradients = pulled(outputs, leaves, vs)
    wide = as_double(case)
    leaves, exact = wide.run()
    weights = [None if v is None else v.to(y.dtype) for y, v in zip(exact, vs)]
    what = "less precise than its dtype allows is the gradient of"
    source = "the same operator in float64, at the same values"
    return each_compared(case, gradients, pulled(exact, leaves, weights), what, source, roundings)
