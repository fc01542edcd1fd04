"""Operators, and faults planted into their gradients whose cause is known.

A fault gets the right gradient as a function of the cotangents, T(v), and returns what a faulty
backward would return for the input at fault.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import torch

Tensors = list[torch.Tensor]
Right = Callable[[Sequence[torch.Tensor]], Tensors]

#: A planted gradient that differs from the right one by less than this share of it is no fault.
VISIBLE = 0.02


@dataclass(frozen=True)
class Operator:
    """A right operator.

    Args:
        function: of tensors.
        sizes: three sets of shapes, one an input, from small to large.
        at: position of the input at fault.
        complex: whether the inputs are complex.
    """

    name: str
    function: Callable[..., Any]
    sizes: tuple[tuple[tuple[int, ...], ...], ...]
    at: int = 0
    complex: bool = False

    def inputs(self, size: int, dtype: torch.dtype, seed: int) -> Tensors:
        """Random inputs, requiring grad."""
        generator = torch.Generator().manual_seed(seed)
        wide = torch.complex128 if self.complex else torch.float64
        if self.complex:
            dtype = dtype.to_complex()
        return [
            torch.randn(shape, generator=generator, dtype=wide).to(dtype).requires_grad_()
            for shape in self.sizes[size]
        ]


def _two(x: torch.Tensor, y: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    return x * y, torch.sin(x) + y


F = torch.nn.functional
OPERATORS = (
    Operator("linear, weight", F.linear, (((3, 4), (4, 4), (4,)), ((9, 40), (30, 40), (30,)),
                                         ((8, 64), (64, 64), (64,))), 1),
    Operator("matmul, left", torch.matmul, (((3, 4), (4, 5)), ((24, 24), (24, 7)),
                                           ((2, 30, 30), (30, 9)))),
    Operator("product", torch.mul, (((3, 5), (3, 5)), ((6, 6), (6, 6)), ((50, 60), (50, 60)))),
    Operator("softmax", lambda x: torch.softmax(x, -1), (((4, 6),), ((12, 12),), ((40, 30),))),
    Operator("layer norm, weight", lambda x, w, b: F.layer_norm(x, w.shape, w, b),
             (((6, 6), (6,), (6,)), ((4, 5, 7), (5, 7), (5, 7)), ((20, 300), (300,), (300,))), 1),
    Operator("conv1d, weight", F.conv1d, (((2, 3, 9), (4, 3, 3)), ((3, 6, 12), (6, 6, 3)),
                                         ((2, 16, 20), (32, 16, 5))), 1),
    Operator("conv2d, input", F.conv2d, (((1, 2, 5, 5), (3, 2, 3, 3)), ((2, 3, 7, 6), (4, 3, 3, 2)),
                                        ((2, 4, 16, 16), (5, 4, 3, 3)))),
    Operator("bias", torch.add, (((5, 5), (5,)), ((4, 8, 8), (8,)), ((12, 400), (400,))), 1),
    Operator("cumsum", lambda x: x.cumsum(-1), (((3, 5),), ((9, 9),), ((20, 50),))),
    Operator("two outputs", _two, (((3, 4), (3, 4)), ((8, 8), (8, 8)), ((30, 40), (30, 40)))),
    Operator("complex product", torch.mul, (((3, 4), (3, 4)), ((7, 7), (7, 7)),
                                           ((20, 30), (20, 30))), complex=True),
    Operator("complex matmul", torch.matmul, (((3, 4), (4, 4)), ((6, 9), (9, 5)),
                                             ((20, 20), (20, 20))), 1, complex=True),
)  # fmt: skip


@dataclass
class Fault:
    """A fault, ready for one operator and sample.

    Args:
        cause: slug that must be named.
        plant: from T and v to what backward returns for the input at fault.
        other: input that gets the right gradient of the one at fault; None: its own.
    """

    cause: str
    detail: str
    plant: Callable[[Right, Sequence[torch.Tensor]], torch.Tensor]
    other: int | None = None


def faults(operator: Operator, inputs: Sequence[torch.Tensor], seed: int) -> Iterator[Fault]:
    """Every fault that the operator can have on these inputs.

    Left out: what can't be said of a shape (a transposition of one axis, a flip of one element,
    an order of two slices other than a flip), and grad_output in place of a gradient of another
    shape. What changes no gradient is left out later, by :func:`visible`.
    """
    at = operator.at
    shape = tuple(inputs[at].shape)
    count = math.prod(shape)
    generator = torch.Generator().manual_seed(seed)

    def draw(top: int) -> int:
        return int(torch.randint(0, top, (), generator=generator))

    def own(change: Callable[[torch.Tensor], torch.Tensor]) -> Any:
        return lambda right, vs: change(right(vs)[at])

    yield Fault("sign", "", own(torch.neg))
    yield Fault("zero", "", own(torch.zeros_like))
    last = shape[-1]
    factors = {
        "2": 2.0,
        "1/2": 0.5,
        "3/2": 1.5,
        f"{count}": count,
        f"1/{count}": 1.0 / count,
        f"1/({last} - 1)": 1.0 / (last - 1) if last > 2 else 0.25,
        f"1/sqrt({last})": last**-0.5,
        "pi": math.pi,
    }
    for words in sorted(factors)[draw(3) :: 3]:
        factor = factors[words]
        yield Fault("scaled", words, own(lambda g, f=factor: g * f))
    if len(shape) > 1:
        yield Fault("transposed", ".mT", own(lambda g: g.mT.reshape(g.shape)))
    others = [k for k, x in enumerate(inputs) if k != at and x.shape == inputs[at].shape]
    if others:
        yield Fault("swapped", "both", lambda right, vs: right(vs)[others[0]], others[0])
        yield Fault("swapped", "one", lambda right, vs: right(vs)[others[0]])
    long = [axis for axis, size in enumerate(shape) if size > 2]
    axis = long[draw(len(long))] if long else 0
    if long:
        yield Fault("flipped-axis", f"axis {axis}", own(lambda g: g.flip(axis)))
        yield Fault("permuted-axis", f"axis {axis}", own(lambda g: g.roll(1, axis)))
    yield from _regular(shape, axis, draw, own)
    yield from _of_outputs(operator, inputs, at)
    noise = torch.randn(shape, generator=generator, dtype=torch.float64)
    yield Fault("additive-constant", "", own(lambda g: g + noise.to(g.dtype)))
    yield Fault(
        "ignores-grad-output", "", lambda right, vs: right([torch.ones_like(v) for v in vs])[at]
    )
    yield Fault("not-linear", "clamp", own(_clamped))
    low = torch.bfloat16 if inputs[at].dtype == torch.float64 else None
    if low is not None and count >= 16:
        yield Fault("low-precision", "bfloat16", own(lambda g: g.to(low).to(g.dtype)))
    yield Fault("stale", "grad_output", _Stale(at))
    if operator.complex:
        yield Fault("conjugate", "whole", own(lambda g: g.conj().resolve_conj()))
        yield Fault(
            "conjugate",
            "factor",
            lambda right, vs: right([v.conj().resolve_conj() for v in vs])[at].conj(),
        )


def _regular(shape: Sequence[int], axis: int, draw: Any, own: Any) -> Iterator[Fault]:
    """Some elements are zero that should not be."""
    count, size = math.prod(shape), shape[axis]
    element = draw(count)

    def without(*index: Any) -> Any:
        def change(g: torch.Tensor) -> torch.Tensor:
            g = g.clone()
            g[(*[slice(None)] * axis, *index)] = 0.0
            return g

        return own(change)

    def without_element(g: torch.Tensor) -> torch.Tensor:
        g = g.clone(memory_format=torch.contiguous_format)
        g.view(-1)[element] = 0.0
        return g

    if count > 3:
        yield Fault("one-element", f"{element}", own(without_element))
    if size > 2 and len(shape) > 1:
        yield Fault("one-slice", "last", without(-1))
    if size > 3:
        yield Fault("boundary", "both ends", without([0, size - 1]))
        yield Fault("periodic", "every second", without(slice(1, None, 2)))
    if size > 5:
        yield Fault("block", "second half", without(slice(size // 2, None)))
    if len(shape) == 2 and min(shape) > 2:

        def without_diagonal(g: torch.Tensor) -> torch.Tensor:
            g = g.clone()
            torch.diagonal(g).zero_()
            return g

        yield Fault("diagonal", "", own(without_diagonal))


def _of_outputs(operator: Operator, inputs: Sequence[torch.Tensor], at: int) -> Iterator[Fault]:
    """Faults in what is done with the cotangents."""
    found = operator.function(*[x.detach() for x in inputs])
    outputs = [found] if isinstance(found, torch.Tensor) else list(found)
    if len(outputs) > 1:
        yield Fault(
            "ignores-one-grad-output",
            "second",
            lambda right, vs: right([vs[0], *[torch.zeros_like(v) for v in vs[1:]]])[at],
        )
        return
    if outputs[0].shape == inputs[at].shape:
        yield Fault("straight-through", "", lambda right, vs: vs[0].clone())
    if operator.name in ("bias", "layer norm, weight", "linear, weight", "conv1d, weight"):

        def one_of_batch(right: Right, vs: Sequence[torch.Tensor]) -> torch.Tensor:
            v = torch.zeros_like(vs[0])
            v[0] = vs[0][0]
            return right([v])[at]

        yield Fault("missing-reduction", "axis 0", one_of_batch)
    shape = tuple(outputs[0].shape)
    if operator.name == "bias" and shape[-1] == shape[-2]:
        axes = [axis for axis in range(len(shape)) if axis != len(shape) - 2]
        yield Fault("wrong-axis", f"{axes}", lambda right, vs: vs[0].sum(axes))
    if operator.name == "layer norm, weight" and shape[-1] == shape[-2]:
        normal = F.layer_norm(inputs[0].detach(), shape[-1:])
        if len(shape) == 2:
            yield Fault("wrong-axis", "1", lambda right, vs: (vs[0] * normal).sum(1))


def _clamped(g: torch.Tensor) -> torch.Tensor:
    size = g.abs()
    return g * (0.4 * size.max() / size.clamp_min(1e-30)).clamp(max=1.0)


class _Stale:
    """The gradient for the cotangents of the call before."""

    def __init__(self, at: int) -> None:
        self.at = at
        self.before: list[torch.Tensor] | None = None

    def __call__(self, right: Right, vs: Sequence[torch.Tensor]) -> torch.Tensor:
        before, self.before = self.before, [v.detach().clone() for v in vs]
        return right(before or vs)[self.at]


def planted(operator: Operator, fault: Fault | None) -> type[torch.autograd.Function]:
    """The operator as a Function, with the fault in its backward."""

    def forward(ctx: Any, *args: torch.Tensor) -> Any:
        ctx.save_for_backward(*args)
        return operator.function(*args)

    def backward(ctx: Any, *vs: torch.Tensor) -> tuple[torch.Tensor, ...]:
        right = right_gradient(operator, ctx.saved_tensors)
        found = right(vs)
        if fault is not None:
            own, found[operator.at] = found[operator.at], fault.plant(right, vs)
            if fault.other is not None:
                found[fault.other] = own
        return tuple(found)

    methods = {"forward": staticmethod(forward), "backward": staticmethod(backward)}
    return type("Planted", (torch.autograd.Function,), methods)


def right_gradient(operator: Operator, values: Sequence[torch.Tensor]) -> Right:
    """T of the operator at a point."""

    def right(vs: Sequence[torch.Tensor]) -> Tensors:
        leaves = [x.detach().clone().requires_grad_() for x in values]
        with torch.enable_grad():
            found = operator.function(*leaves)
        outputs = [found] if isinstance(found, torch.Tensor) else list(found)
        return [g.clone() for g in torch.autograd.grad(outputs, leaves, list(vs))]

    return right


def drawn_gradients(
    operator: Operator, inputs: Sequence[torch.Tensor], fault: Fault, seed: int
) -> Iterator[tuple[torch.Tensor, torch.Tensor]]:
    """What the fault returns and what is right, under three cotangents."""
    right = right_gradient(operator, inputs)
    found = operator.function(*[x.detach() for x in inputs])
    outputs = [found] if isinstance(found, torch.Tensor) else list(found)
    generator = torch.Generator().manual_seed(seed)
    for _ in range(3):
        vs = [
            torch.randn(y.shape, generator=generator, dtype=torch.float64).to(y.dtype)
            for y in outputs
        ]
        yield fault.plant(right, vs), right(vs)[operator.at]


def same(pairs: Sequence[tuple[torch.Tensor, torch.Tensor]], share: float) -> bool:
    """Whether the tensors of every pair agree to ``share`` of the second."""
    return all(float((a - b).norm()) <= share * float(b.norm()) for a, b in pairs)
