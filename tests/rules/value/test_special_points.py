"""GL402: wrong gradients at special points, and right ones at kinks, jumps and roots."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor
from torch.autograd import Function

from gradlint.experiments.finite.special_values import as_symmetric, is_symmetric
from gradlint.experiments.subject import Subject
from gradlint.experiments.value.solver_tolerance import unconverged_at
from gradlint.model.rule import Outcome
from gradlint.model.sample import Sample
from gradlint.model.settings import Settings
from gradlint.rules.catalogue import by_code
from gradlint.targets.build import from_object

GL402 = by_code("GL402")

X = torch.tensor([[0.7, -1.3, 2.1, 0.4], [-0.2, 1.6, -2.4, 0.9], [1.1, -0.6, 0.3, -1.8]])
LOW = pytest.mark.parametrize("dtype", [torch.float64, torch.float32])


def formula(forward: Callable[..., Tensor], slope: Callable[..., Tensor]) -> Any:
    """y = forward(x, *numbers) element by element, with dy/dx = slope(x, *numbers)."""

    class Op(Function):
        @staticmethod
        def forward(ctx: Any, x: Tensor, *numbers: float) -> Tensor:
            ctx.save_for_backward(x)
            ctx.numbers = numbers
            return forward(x, *numbers)

        @staticmethod
        def backward(ctx: Any, g: Tensor) -> Any:
            (x,) = ctx.saved_tensors
            return g * slope(x, *ctx.numbers), *(None for _ in ctx.numbers)

    return Op


def at(x: Tensor, value: float) -> Tensor:
    return (x == value).to(x.dtype)


@LOW
@pytest.mark.parametrize(
    ("forward", "slope", "numbers", "words"),
    [
        (torch.sin, lambda x: x.cos() * (x != 0), (), "every element is zero"),
        (torch.sin, lambda x: x.cos() * (x != 1), (), "it is 1"),
        (torch.tanh, lambda x: torch.where(x.abs() > 9, 1.0, 1 - x.tanh() ** 2), (), "magnitudes"),
        (lambda x, c: x * c, lambda x, c: c * (x != c), (0.8,), "it is 0.8"),
    ],
)
def test_wrong_at_a_smooth_point(
    probed: Callable[..., Outcome],
    forward: Any,
    slope: Any,
    numbers: tuple[float, ...],
    words: str,
    dtype: torch.dtype,
) -> None:
    outcome = probed(GL402, formula(forward, slope), X, *numbers, dtype=dtype)
    (finding,) = outcome.findings
    assert (outcome.verdict, finding.severity, finding.input) == ("fail", "error", "x")
    assert words in finding.message
    (element,) = finding.evidence["elements"]
    assert element["error"] == pytest.approx(abs(element["returned"] - element["measured"]))
    assert element["error"] > 0.01


@LOW
@pytest.mark.parametrize(
    ("forward", "slope"),
    [
        (torch.relu, lambda x: (x >= 0) + at(x, 0.0)),
        (torch.abs, lambda x: x.sign() + 2 * at(x, 0.0)),
        (torch.relu, lambda x: (x > 0).to(x.dtype) - at(x, 0.0)),
        (lambda x: x.clamp(-1, 1), lambda x: (x.abs() < 1) + 3 * at(x.abs(), 1.0)),
    ],
)
def test_outside_of_the_one_sided_derivatives(
    probed: Callable[..., Outcome], forward: Any, slope: Any, dtype: torch.dtype
) -> None:
    (finding,) = probed(GL402, formula(forward, slope), X, dtype=dtype).findings
    assert (finding.severity, finding.cause) == ("warning", "kink")
    right, left = (finding.evidence[f"slope_from_{side}"] for side in ("above", "below"))
    returned = finding.evidence["elements"][0]["returned"]
    assert not min(right, left) - 1e-6 <= returned <= max(right, left) + 1e-6


@LOW
@pytest.mark.parametrize("c", [0.0, 0.5, 1.0])
def test_any_slope_between_the_sides_is_right(
    probed: Callable[..., Outcome], c: float, dtype: torch.dtype
) -> None:
    op = formula(torch.relu, lambda x: (x > 0) + c * at(x, 0.0))
    outcome = probed(GL402, op, X, dtype=dtype)
    assert (outcome.verdict, outcome.findings) == ("pass", [])
    assert "single" in outcome.note


@LOW
@pytest.mark.parametrize(
    "op",
    [
        torch.abs,
        torch.sign,
        lambda x: x.round() + x,
        lambda x: x.abs().sqrt(),
        lambda x: x.clamp(-1, 1),
        torch.nn.functional.hardtanh,
        torch.nn.functional.hardswish,
        torch.nn.functional.hardshrink,
        torch.nn.functional.leaky_relu,
        lambda x: x.amax(-1),
        lambda x: x.max(-1).values,
        lambda x: x.median(-1).values,
        lambda x: x.sort(-1).values,
        lambda x: x.cummax(-1).values,
        lambda x: x.topk(2).values,
        lambda x: x.norm(dim=-1),
        lambda x: x.std(-1),
        lambda x: x.prod(-1),
        lambda x: x.softmax(-1),
        lambda x: torch.cdist(x, x),
        lambda x: (x @ x.mT).relu() @ x,
        lambda x: (x.relu() @ torch.ones(4, 3, dtype=x.dtype)).relu().sum(),
        lambda x: torch.nn.functional.layer_norm(x, (4,)),
        lambda x: x.mean(-1, keepdim=True).sub(x).relu(),
        lambda x: torch.linalg.eigvalsh(x @ x.mT),
    ],
)
def test_right_ops_are_silent(probed: Callable[..., Outcome], op: Any, dtype: torch.dtype) -> None:
    assert [finding.message for finding in probed(GL402, op, X, dtype=dtype).findings] == []


class Clipped(Function):
    """Each row between its second smallest and its second largest value."""

    @staticmethod
    def forward(ctx, x):
        values, order = x.sort(-1)
        ctx.save_for_backward(x, order)
        return x.clamp(values[..., 1:2], values[..., -2:-1])

    @staticmethod
    def backward(ctx, g):
        x, order = ctx.saved_tensors
        low, high = order[..., 1:2], order[..., -2:-1]
        under, over = x < x.gather(-1, low), x > x.gather(-1, high)
        grad = g.masked_fill(under | over, 0.0)
        grad = grad.scatter_add(-1, low, (g * under).sum(-1, keepdim=True))
        return grad.scatter_add(-1, high, (g * over).sum(-1, keepdim=True))


class Cubic(Clipped):
    """x³ + x, whose gradient lacks a term at zero alone."""

    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x**3 + x

    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        return g * (3 * x * x + (x != 0).to(x.dtype))


@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize("shape", [(3, 4), (5,)])
def test_where_all_are_equal_a_function_of_the_order_has_no_gradient(
    shape: tuple[int, ...], seed: int
) -> None:
    # It is smooth along every line, and not additive. Which cotangents hide that is chance.
    generator = torch.Generator().manual_seed(seed)
    x = torch.randn(shape, generator=generator, dtype=torch.float64).requires_grad_()

    def told(op: type) -> list[str]:
        bound = Subject(from_object(op), Sample("s", "given", (x,)), Settings(seed=seed))
        return [finding.message for finding in GL402.probe(bound).findings]

    assert told(Clipped) == []
    (message,) = told(Cubic)
    assert "zero" in message


@pytest.mark.parametrize("shared", [True, False])
def test_ties_share_one_gradient(probed: Callable[..., Outcome], shared: bool) -> None:
    class Largest(Function):
        @staticmethod
        def forward(ctx: Any, x: Tensor) -> Tensor:
            y = x.amax(-1, keepdim=True)
            ctx.save_for_backward(x, y)
            return y

        @staticmethod
        def backward(ctx: Any, g: Tensor) -> Tensor:
            x, y = ctx.saved_tensors
            equal = (x == y).to(x.dtype)
            return g * (equal / equal.sum(-1, keepdim=True) if shared else equal)

    findings = probed(GL402, Largest, X).findings
    assert len(findings) == (0 if shared else 1)
    if findings:
        assert (findings[0].severity, findings[0].cause) == ("warning", "kink")
        assert "equal elements move together" in findings[0].message


def test_a_gradient_that_is_wrong_everywhere_is_left_to_its_rule(
    probed: Callable[..., Outcome],
) -> None:
    outcome = probed(GL402, formula(torch.sin, lambda x: 2 * x.cos() * (x != 0)), X)
    assert (outcome.verdict, outcome.findings) == ("skipped", [])
    assert "GL401" in outcome.note


def test_only_the_wrong_input_is_named(probed: Callable[..., Outcome]) -> None:
    class Product(Function):
        @staticmethod
        def forward(ctx: Any, x: Tensor, y: Tensor) -> Tensor:
            ctx.save_for_backward(x, y)
            return x.cos() * y.exp()

        @staticmethod
        def backward(ctx: Any, g: Tensor) -> tuple[Tensor, Tensor]:
            x, y = ctx.saved_tensors
            return -g * x.sin() * y.exp(), g * x.cos() * y.exp() * (y != 0)

    (finding,) = probed(GL402, Product, X, X.flip(0) * 0.7 + 0.05).findings
    assert finding.input == "y"


def test_the_cost(subject: Callable[..., Subject]) -> None:
    bound = subject(torch.sin, X)
    assert bound.first_order.verdicts == ["agrees"]
    forward, backward = bound.problem.forward_calls, bound.problem.backward_calls
    assert GL402.probe(bound).verdict == "pass"
    assert bound.problem.forward_calls - forward <= 7 + 2 * (4 + 8)
    assert bound.problem.backward_calls - backward <= 7


class RootMeanSquare(Function):
    """Without float32 inside, float16 overflows where magnitudes are beyond 256."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, weight: Tensor) -> Tensor:
        scale = (x.square().mean(-1, keepdim=True) + 0.1).rsqrt()
        ctx.save_for_backward(x, weight, scale)
        return x * scale * weight

    @staticmethod
    def backward(ctx: Any, g: Tensor) -> Any:
        x, weight, scale = ctx.saved_tensors
        h = g * weight
        dot = (h * x * scale).mean(-1, keepdim=True)
        return scale * (h - x * scale * dot), (g * x * scale).sum(0)


def test_an_overflow_of_forward_is_no_fault_of_the_gradient(
    probed: Callable[..., Outcome],
) -> None:
    weight = torch.tensor([0.8, 1.2, -0.6, 1.7])
    outcome = probed(GL402, RootMeanSquare, X, weight, dtype=torch.float16)
    assert (outcome.verdict, outcome.findings) == ("pass", [])
    assert "large" not in outcome.note


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_a_fault_in_16_bits_where_forward_does_not_overflow(
    probed: Callable[..., Outcome], dtype: torch.dtype
) -> None:
    op = formula(torch.tanh, lambda x: torch.where(x.abs() > 9, 1.0, 1 - x.tanh() ** 2))
    outcome = probed(GL402, op, X, dtype=dtype)
    assert [finding.input for finding in outcome.findings] == ["x"]


class Similarity(Function):
    """A structural similarity of two images, as one number: at two constant images its gradient is
    the small difference of large terms."""

    @staticmethod
    def moments(x: Tensor, y: Tensor) -> Any:
        mx, my = x.mean(), y.mean()
        dx, dy = x - mx, y - my
        return mx, my, dx, dy, dx.pow(2).mean(), dy.pow(2).mean(), (dx * dy).mean()

    @staticmethod
    def forward(ctx: Any, x: Tensor, y: Tensor) -> Tensor:
        ctx.save_for_backward(x, y)
        mx, my, _, _, vx, vy, cxy = Similarity.moments(x, y)
        light = (2 * mx * my + 1e-4) / (mx**2 + my**2 + 1e-4)
        return light * (2 * cxy + 9e-4) / (vx + vy + 9e-4)

    @staticmethod
    def slopes(ctx: Any, factor: float) -> Any:
        x, y = ctx.saved_tensors
        mx, my, dx, dy, vx, vy, cxy = Similarity.moments(x, y)
        a1, a2 = 2 * mx * my + 1e-4, 2 * cxy + 9e-4
        b1, b2 = mx**2 + my**2 + 1e-4, vx + vy + 9e-4
        s, k = a1 * a2 / (b1 * b2), 2.0 / x.numel()
        gx = k * ((my * a2 + dy * a1) / (b1 * b2) - s * (factor * mx / b1 + dx / b2))
        gy = k * ((mx * a2 + dx * a1) / (b1 * b2) - s * (factor * my / b1 + dy / b2))
        return gx, gy

    @staticmethod
    def backward(ctx: Any, g: Tensor) -> Any:
        gx, gy = Similarity.slopes(ctx, 1.0)
        return g * gx, g * gy


class WrongSimilarity(Similarity):
    """Wrong where both images are constant."""

    @staticmethod
    def backward(ctx: Any, g: Tensor) -> Any:
        x, y = ctx.saved_tensors
        flat = bool(((x == x[0, 0]) & (y == y[0, 0])).all())
        gx, gy = Similarity.slopes(ctx, 1.5 if flat else 1.0)
        return g * gx, g * gy


@LOW
def test_terms_that_cancel_are_no_fault(probed: Callable[..., Outcome], dtype: torch.dtype) -> None:
    generator = torch.Generator().manual_seed(0)
    for shift in (0.0, 1e-3, 2e-3, 4e-3):
        x = torch.rand(4, 5, generator=generator) + 0.5 + shift
        y = torch.rand(4, 5, generator=generator) + 0.5
        assert probed(GL402, Similarity, x, y, dtype=dtype).findings == []
    found = probed(GL402, WrongSimilarity, x, y, dtype=dtype).findings
    assert {finding.input for finding in found} == {"x", "y"}


#: No dtype of 16 bits holds it: the op compares with what its dtype makes of it.
BOUND = 0.7


@pytest.mark.parametrize("dtype", [torch.float64, torch.float16, torch.bfloat16])
@pytest.mark.parametrize(
    ("slope", "wrong"),
    [
        (lambda x, c: (x >= c).to(x), False),
        (lambda x, c: (x > c).to(x), False),
        (lambda x, c: torch.where(x == c, 3.0, (x > c).to(x)), True),
    ],
)
def test_a_bound_that_the_dtype_rounds(
    probed: Callable[..., Outcome], slope: Any, wrong: bool, dtype: torch.dtype
) -> None:
    op = formula(lambda x, c: torch.where(x >= c, x, c), slope)
    outcome = probed(GL402, op, torch.where(X == BOUND, 0.6, X), BOUND, dtype=dtype)
    assert [finding.input for finding in outcome.findings] == ["x"] * wrong


class ByLargest(Function):
    """x / s with s = max|x|, whose gradient belongs to the element of the largest magnitude."""

    @staticmethod
    def forward(ctx: Any, x: Tensor) -> Tensor:
        size = x.abs().max()
        ctx.save_for_backward(x, size)
        return x / size

    @staticmethod
    def backward(ctx: Any, g: Tensor) -> Tensor:
        x, size = ctx.saved_tensors
        largest = x.abs() == size
        return g / size - largest / largest.sum() * x.sign() * (g * x).sum() / size**2


class ByLargestPositive(ByLargest):
    @staticmethod
    def backward(ctx: Any, g: Tensor) -> Tensor:
        x, size = ctx.saved_tensors
        largest = x == size
        return g / size - largest / largest.sum().clamp(min=1) * (g * x).sum() / size**2


def test_a_fault_for_one_sign_of_the_largest_element(probed: Callable[..., Outcome]) -> None:
    """At the sample it is right, whose largest element is positive."""
    x = torch.where(X == -2.4, 2.4, X)
    outcome = probed(GL402, ByLargestPositive, x)
    assert [finding.input for finding in outcome.findings] == ["x"]
    assert "magnitudes" in outcome.findings[0].message
    outcome = probed(GL402, ByLargest, x)
    assert (outcome.verdict, outcome.findings) == ("pass", [])


class SingleInside(Function):
    """A smooth sum of squares of small weight beside a large one, computed in float32."""

    WRONG_AT_ZERO = False

    @staticmethod
    def forward(ctx: Any, x: Tensor) -> Tensor:
        ctx.save_for_backward(x)
        weights = torch.logspace(0, -4, x.numel()).reshape(x.shape)
        return (weights * x.float().sin()).sum().to(x.dtype)

    @classmethod
    def backward(cls, ctx: Any, g: Tensor) -> Tensor:
        (x,) = ctx.saved_tensors
        weights = torch.logspace(0, -4, x.numel()).reshape(x.shape)
        slope = x.cos() * (x != 0) if cls.WRONG_AT_ZERO else x.cos()
        return g * (weights * slope).to(x.dtype)


class SingleInsideWrong(SingleInside):
    WRONG_AT_ZERO = True


def test_float32_inside_of_float64_is_measured_as_float32(probed: Callable[..., Outcome]) -> None:
    outcome = probed(GL402, SingleInside, X)
    assert (outcome.verdict, outcome.findings) == ("pass", [])
    outcome = probed(GL402, SingleInsideWrong, X)
    assert [finding.input for finding in outcome.findings] == ["x"]


class SquareRoot(Function):
    """√(1 + x²) by Newton's iteration from 1, ``times`` times: enough for values of order one."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, times: int = 7) -> Tensor:
        square = 1 + x * x
        y = torch.ones_like(x)
        for _ in range(times):
            y = (y + square / y) / 2
        ctx.save_for_backward(x, y)
        return y

    @staticmethod
    def backward(ctx: Any, g: Tensor) -> tuple[Tensor, None]:
        x, y = ctx.saved_tensors
        return g * x / y, None


class Saturated(SquareRoot):
    """The gradient is lost at large values, however often forward iterates."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, times: int = 40) -> Tensor:
        return SquareRoot.forward(ctx, x, times)

    @staticmethod
    def backward(ctx: Any, g: Tensor) -> tuple[Tensor, None]:
        x, y = ctx.saved_tensors
        return g * x / y * (x.abs().log() < 2.2), None


def test_too_few_iterations_for_large_values_are_no_fault_of_backward(
    probed: Callable[..., Outcome],
) -> None:
    (finding,) = probed(GL402, SquareRoot, X).findings
    assert "at magnitudes from 10 to 10000" in finding.message
    assert finding.grounds.explained == "solver"
    (finding,) = probed(GL402, Saturated, X).findings
    assert "at magnitudes from 10 to 10000" in finding.message
    assert finding.grounds.explained is None


class Coupled(Function):
    """z = tanh(w(x)·z + x + 1), with w small but near zero: elsewhere a few steps are enough."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, num_iters: int = 4) -> Tensor:
        weight = 0.9 * torch.exp(-8 * x * x)
        z = torch.zeros_like(x)
        for _ in range(num_iters):
            z = (weight * z + x + 1).tanh()
        ctx.save_for_backward(x, z)
        return z

    @staticmethod
    def backward(ctx: Any, g: Tensor) -> tuple[Tensor, None]:
        x, z = ctx.saved_tensors
        weight, slope = 0.9 * torch.exp(-8 * x * x), 1 - z * z
        return g * slope * (1 - 16 * x * weight * z) / (1 - weight * slope), None


class CoupledWithAnotherName(Coupled):
    """Small integers are axes, sizes and flags where their names say nothing."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, rank: int = 4) -> Tensor:
        return Coupled.forward(ctx, x, rank)


class WrongBesideExplained(Coupled):
    """The number of steps explains what is wrong at zero, and nothing what is wrong at 0.9."""

    @staticmethod
    def backward(ctx: Any, g: Tensor) -> tuple[Tensor, None]:
        x, _ = ctx.saved_tensors
        return torch.where(x == 0.9, 1.0, 0.0) * g + Coupled.backward(ctx, g)[0], None


AWAY = torch.tensor([[0.8, -1.3, 1.1], [-0.95, 1.4, -1.2]], dtype=torch.float64).requires_grad_()


def test_what_is_explained_hides_nothing_that_is_not(probed: Callable[..., Outcome]) -> None:
    (finding,) = probed(GL402, Coupled, AWAY).findings
    assert finding.evidence["x there"] == 0.0
    assert finding.grounds.explained == "solver"
    (finding,) = probed(GL402, CoupledWithAnotherName, AWAY).findings
    assert finding.grounds.explained is None
    (finding,) = probed(GL402, WrongBesideExplained, AWAY).findings
    assert finding.grounds.explained is None
    assert finding.evidence["x there"] == 0.9


class Written(SquareRoot):
    """The number of iterations is no argument."""

    @staticmethod
    def forward(ctx: Any, x: Tensor) -> Tensor:
        square = 1 + x * x
        y = torch.ones_like(x)
        for _ in range(7):
            y = (y + square / y) / 2
        ctx.save_for_backward(x, y)
        return y

    @staticmethod
    def backward(ctx: Any, g: Tensor) -> Tensor:
        x, y = ctx.saved_tensors
        return g * x / y


class WrittenButSaturated(Written):
    """The gradient is lost at large values, however often forward iterates."""

    @staticmethod
    def forward(ctx: Any, x: Tensor) -> Tensor:
        square = 1 + x * x
        y = torch.ones_like(x)
        for _ in range(40):
            y = (y + square / y) / 2
        ctx.save_for_backward(x, y)
        return y

    @staticmethod
    def backward(ctx: Any, g: Tensor) -> Tensor:
        x, y = ctx.saved_tensors
        return g * x / y * (x.abs().log() < 2.2)


def test_a_number_of_iterations_that_is_written_in_the_code(
    probed: Callable[..., Outcome],
) -> None:
    (finding,) = probed(GL402, Written, X).findings
    assert "at magnitudes from 10 to 10000" in finding.message
    assert finding.grounds.explained == "solver"
    (finding,) = probed(GL402, WrittenButSaturated, X).findings
    assert finding.grounds.explained is None


class Settles(torch.nn.Module):
    """z = tanh(weight·z + x) by ``times`` steps, with the gradient of the limit: more steps are
    needed for larger weights."""

    def __init__(self) -> None:
        super().__init__()
        self.times = 6

    def forward(self, x: Tensor, weight: Tensor) -> Tensor:
        return SettlesFunction.apply(x, weight, self.times)


class SettlesFunction(Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, weight: Tensor, times: int) -> Tensor:
        z = torch.zeros_like(x)
        for _ in range(times):
            z = (weight * z + x).tanh()
        ctx.save_for_backward(z, weight)
        return z

    @staticmethod
    def backward(ctx: Any, g: Tensor) -> tuple[Tensor | None, ...]:
        z, weight = ctx.saved_tensors
        slope = 1 - z * z
        of_x = g * slope / (1 - weight * slope)
        return of_x, (of_x * z).sum_to_size(weight.shape), None


def test_a_module_that_does_not_iterate_often_enough_at_other_values(
    subject: Callable[..., Subject],
) -> None:
    module = Settles()
    weight = torch.tensor([0.03, -0.04, 0.02, 0.025], dtype=torch.float64).requires_grad_()
    seen = subject(module, X.double().requires_grad_(), weight)
    x, usual = seen.problem.values()
    assert not unconverged_at(seen, [x, 0.9 * usual], 0)
    assert unconverged_at(seen, [x, torch.full_like(usual, 0.7)], 0)
    assert module.times == 6
    module.times = 4  # fewer than any number of iterations that is meant
    assert not unconverged_at(seen, [x, torch.full_like(usual, 0.7)], 0)


class Equilibrium(torch.nn.Module):
    """z = tanh(W z + x) by 200 steps: with one and minus one in W, the limit is reached sooner than
    its slope, and backward returns nearly the same after more steps."""

    def __init__(self, function: Any) -> None:
        super().__init__()
        self.weight = torch.nn.Parameter(torch.tensor(COUPLING, dtype=torch.float64))
        self.steps = 200
        self.function = function

    def forward(self, x: Tensor) -> Tensor:
        found: Tensor = self.function.apply(x, self.weight, self.steps)
        return found


COUPLING = [
    [0.126, 0.046, 0.022, -0.045],
    [-0.156, 0.054, 0.002, -0.092],
    [-0.088, -0.051, 0.097, 0.015],
    [-0.130, -0.002, -0.079, -0.034],
]


VALUES = [[-0.10, -0.90, 1.75, 0.97], [0.20, -1.83, -0.68, -0.21], [-1.22, 0.45, 1.25, 0.70]]


class EquilibriumFunction(Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, weight: Tensor, steps: int) -> Tensor:
        z = torch.zeros_like(x)
        for _ in range(steps):
            z = (z @ weight.T + x).tanh()
        ctx.save_for_backward(x, z, weight)
        return z

    @staticmethod
    def backward(ctx: Any, g: Tensor) -> tuple[Tensor | None, ...]:
        _, z, weight = ctx.saved_tensors
        slope = 1 - z * z
        coupled = torch.eye(4, dtype=z.dtype) - slope.unsqueeze(-1) * weight
        of_x = torch.linalg.solve(coupled.mT, g.unsqueeze(-1)).squeeze(-1) * slope
        return of_x, of_x.T @ z, None


class LostAtOne(EquilibriumFunction):
    """The gradient is lost where x is one, however often forward iterates."""

    @staticmethod
    def backward(ctx: Any, g: Tensor) -> tuple[Tensor | None, ...]:
        x, _, _ = ctx.saved_tensors
        of_x, of_weight, _ = EquilibriumFunction.backward(ctx, g)
        return torch.where(x == 1.0, 0.0, of_x), of_weight, None  # type: ignore[arg-type]


def test_a_gradient_that_is_right_after_more_iterations(probed: Callable[..., Outcome]) -> None:
    x = torch.tensor(
        [[-0.10, -0.90, 1.75, 0.97], [0.20, -1.83, -0.68, -0.21], [-1.22, 0.45, 1.25, 0.70]]
    )
    x = x.double().requires_grad_()
    right = probed(GL402, Equilibrium(EquilibriumFunction), x).findings
    assert {finding.grounds.explained for finding in right} == {"solver"}
    wrong = probed(GL402, Equilibrium(LostAtOne), x).findings
    assert {finding.grounds.explained for finding in wrong if finding.input == "x"} == {None}


class Capped(torch.nn.Module):
    """min(x, limit), with a wrong gradient at the limit."""

    def __init__(self) -> None:
        super().__init__()
        self.limit = 6

    def forward(self, x: Tensor) -> Tensor:
        found: Tensor = CappedFunction.apply(x, self.limit)
        return found


class CappedFunction(Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, limit: int) -> Tensor:
        ctx.save_for_backward(x)
        ctx.limit = limit
        for _ in range(6):
            x = torch.minimum(x, torch.full_like(x, float(limit)))
        return x

    @staticmethod
    def backward(ctx: Any, g: Tensor) -> tuple[Tensor, None]:
        (x,) = ctx.saved_tensors
        return torch.where(x == ctx.limit, 3.0 * g, g * (x < ctx.limit)), None


def test_a_limit_is_no_number_of_iterations(subject: Callable[..., Subject]) -> None:
    seen = subject(Capped(), torch.tensor([0.5, 1.5, -2.0, 2.5]).double())
    (usual,) = seen.problem.values()
    assert not unconverged_at(seen, [usual], 0)
    # With a limit of 24, the gradient there is another one.
    assert not unconverged_at(seen, [torch.full_like(usual, 6.0)], 0)


class Poincare(Function):
    """Distance in the unit ball; far outside of it, all digits of acosh are lost."""

    most = 1e9

    @staticmethod
    def forward(ctx: Any, u: Tensor, v: Tensor) -> Tensor:
        a, b = 1 - (u * u).sum(-1), 1 - (v * v).sum(-1)
        t = 1 + 2 * (u - v).square().sum(-1) / (a * b)
        ctx.save_for_backward(u, v, a[..., None], b[..., None], t[..., None])
        return torch.acosh(t)

    @staticmethod
    def backward(ctx: Any, g: Tensor) -> tuple[Tensor, Tensor]:
        u, v, a, b, t = ctx.saved_tensors
        k = g[..., None] / (t * t - 1).sqrt()
        apart, away = 4 * (u - v) / (a * b), 2 * (t - 1)
        of_u, of_v = k * (apart + away / a * u), k * (away / b * v - apart)
        return of_u * (u.abs() < Poincare.most), of_v * (v.abs() < Poincare.most)


def test_what_autograd_returns_too_at_large_values_is_no_fault_of_backward(
    probed: Callable[..., Outcome], monkeypatch: pytest.MonkeyPatch
) -> None:
    u = torch.tensor([[0.67, -0.94, 1.77, -1.25], [0.91, -0.43, 0.43, -0.21]]).double()
    v = torch.tensor([[1.98, 0.21, 0.70, -0.64], [-1.28, -0.45, -0.89, 1.29]]).double()
    for most, explained in ((1e9, {"rounding"}), (50.0, {None})):
        monkeypatch.setattr(Poincare, "most", most)
        found = probed(GL402, Poincare, u, v).findings
        assert all("at magnitudes from 10 to 10000" in item.message for item in found)
        assert {item.grounds.explained for item in found} == explained


class QuadraticForm(Function):
    """xᵀMx for symmetric matrices M."""

    @staticmethod
    def forward(ctx: Any, m: Tensor, x: Tensor) -> Tensor:
        ctx.save_for_backward(m, x)
        return ((x @ m) * x).sum(-1)

    @staticmethod
    def backward(ctx: Any, g: Tensor) -> Any:
        m, x = ctx.saved_tensors
        return x.mT @ (g[:, None] * x), 2 * g[:, None] * (x @ m)


class QuadraticFormWrongAtOne(QuadraticForm):
    @staticmethod
    def backward(ctx: Any, g: Tensor) -> Any:
        of_m, of_x = QuadraticForm.backward(ctx, g)
        return of_m, of_x * (ctx.saved_tensors[1] != 1)


@LOW
def test_symmetric_matrices_stay_symmetric(
    probed: Callable[..., Outcome], dtype: torch.dtype
) -> None:
    m = (X[:, :3] + X[:, :3].mT).to(dtype)
    x = X.mT.contiguous().to(dtype)
    outcome = probed(GL402, QuadraticForm, m.requires_grad_(), x.requires_grad_())
    assert outcome.verdict == "pass"
    assert outcome.note.startswith("judged: ")
    outcome = probed(GL402, QuadraticFormWrongAtOne, m, x)
    assert [finding.input for finding in outcome.findings] == ["x"]
    assert "it is 1" in outcome.findings[0].message


def test_the_symmetric_form_of_special_values() -> None:
    before = torch.tensor([[1.0, 2.0, 3.0], [2.0, 4.0, 5.0], [3.0, 5.0, 6.0]])
    assert is_symmetric(before)
    assert not is_symmetric(torch.eye(3))
    assert not is_symmetric(torch.ones(3, 3))
    assert not is_symmetric(before.tril())
    assert not is_symmetric(before[:2])
    after = before.clone()
    after[0, 2], after[1, 0], after[0, 1], after[2, 2] = 7.0, 8.0, 9.0, 10.0
    wanted = torch.tensor([[1.0, 8.0, 7.0], [8.0, 4.0, 5.0], [7.0, 5.0, 10.0]])
    assert torch.equal(as_symmetric(after, before), wanted)
    assert as_symmetric(after, before.tril()) is after


class PowerMean(Function):
    """(mean |x|^p)^(1/p): the formula divides by p, which is positive."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, p: Tensor) -> Tensor:
        ctx.save_for_backward(x, p)
        return x.abs().pow(p).mean(-1).pow(1 / p)

    @staticmethod
    def backward(ctx: Any, g: Tensor) -> tuple[Tensor, Tensor]:
        x, p = ctx.saved_tensors
        a = x.abs().clamp(min=1e-300)
        m = a.pow(p).mean(-1, keepdim=True)
        y = m.pow(1 / p)
        slope = (a.pow(p) * a.log()).mean(-1, keepdim=True) / (p * m) - m.log() / p**2
        by_x = y / m * a.pow(p - 1) / x.shape[-1] * x.sign()
        return g[..., None] * by_x, (g[..., None] * y * slope).sum().reshape(p.shape)


class FaultyPowerMean(PowerMean):
    """Wrong where two elements of a row are equal, whatever p is."""

    @staticmethod
    def backward(ctx: Any, g: Tensor) -> tuple[Tensor, Tensor]:
        by_x, by_p = PowerMean.backward(ctx, g)
        x, _ = ctx.saved_tensors
        tied = (x[..., :, None] == x[..., None, :]).sum(-1) == 2
        return by_x / (1.0 + tied), by_p


class Pooling(torch.nn.Module):
    def __init__(self, op: type[Function]) -> None:
        super().__init__()
        self.op = op
        self.p = torch.nn.Parameter(torch.tensor([2.5], dtype=torch.float64))

    def forward(self, x: Tensor) -> Tensor:
        return self.op.apply(x, self.p)


def test_a_zero_in_a_parameter_explains_what_is_wrong_there(probed: Callable[..., Outcome]) -> None:
    def kinds(op: type[Function]) -> list[set[tuple[str | None, str, str | None]]]:
        outcomes = probed(GL402, Pooling(op), X), probed(GL402, op, X, torch.tensor([2.5]))
        return [
            {(it.input, it.grounds.where, it.grounds.explained) for it in outcome.findings}
            for outcome in outcomes
        ]

    assert kinds(PowerMean) == [{("x", "special", "parameter")}, {("x", "special", "divisor")}]
    assert kinds(FaultyPowerMean) == [{("x", "sample", None)}, {("x", "sample", None)}]


class LeakySum(Function):
    """Wrong where a is large, as a series that is cut off is."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, a: Tensor) -> Tensor:
        ctx.save_for_backward(x, a)
        return x / (1 + a * a)

    @staticmethod
    def backward(ctx: Any, g: Tensor) -> tuple[Tensor, Tensor]:
        x, a = ctx.saved_tensors
        share = 1 / (1 + a * a)
        kept = share if float(a.abs().max()) < 100 else share * 0.5
        return g * kept, (g * x * -2 * a * share**2).sum().reshape(a.shape)


class FaultyLeakySum(LeakySum):
    """Wrong at large data, whatever a is."""

    @staticmethod
    def backward(ctx: Any, g: Tensor) -> tuple[Tensor, Tensor]:
        by_x, by_a = LeakySum.backward(ctx, g)
        x, _ = ctx.saved_tensors
        return torch.where(x.abs() > 100, 0.5 * by_x, by_x), by_a


def test_a_large_parameter_explains_what_is_wrong_at_large_values(
    probed: Callable[..., Outcome],
) -> None:
    def kinds(op: type[Function]) -> list[set[tuple[str | None, str, str | None]]]:
        outcomes = probed(GL402, Pooling(op), X), probed(GL402, op, X, torch.tensor([2.5]))
        return [
            {(it.input, it.grounds.where, it.grounds.explained) for it in outcome.findings}
            for outcome in outcomes
        ]

    assert kinds(LeakySum) == [{("x", "extreme", "parameter")}, {("x", "extreme", None)}]
    assert kinds(FaultyLeakySum) == [{("x", "extreme", None)}, {("x", "extreme", None)}]


def soft_sort(s: Tensor) -> Tensor:
    top = s.sort(descending=True).values
    return (-(top[:, None] - s[None, :]).abs()).softmax(-1)


class SoftSort(Function):
    """SoftSort (Prillo & Eisenschlos 2020): at ties, the slopes of the order and of the distance
    are each between their sides, and their sum need not be."""

    @staticmethod
    def forward(ctx, s):
        ctx.save_for_backward(s)
        return soft_sort(s)

    @staticmethod
    def backward(ctx, g):
        rows, cols, _, perm = SoftSort.parts(ctx, g)
        return cols.index_add(0, perm, rows)

    @staticmethod
    def parts(ctx, g):
        (s,) = ctx.saved_tensors
        top, perm = s.sort(descending=True)
        diff = top[:, None] - s[None, :]
        p = (-diff.abs()).softmax(-1)
        d = p * (g - (g * p).sum(-1, keepdim=True)) * -diff.sign()
        return d.sum(1), -d.sum(0), top, perm


class CountedTwice(SoftSort):
    """Each of two equal elements gets the gradient of both places."""

    @staticmethod
    def backward(ctx, g):
        rows, cols, top, _ = SoftSort.parts(ctx, g)
        return cols + rows @ (top[:, None] == ctx.saved_tensors[0][None, :]).to(rows)


@pytest.mark.parametrize(("op", "verdict"), [(SoftSort, "pass"), (CountedTwice, "fail")])
def test_what_autograd_returns_at_a_kink_is_right(
    probed: Callable[..., Outcome], op: type[Function], verdict: str
) -> None:
    for seed in (4, 6, 7):
        s = torch.randn(5, dtype=torch.float64, generator=torch.Generator().manual_seed(seed))
        assert probed(GL402, op, s).verdict == verdict
