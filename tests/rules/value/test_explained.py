"""What explains a gradient that differs, other than a wrong backward; and what does not."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch.autograd import Function

import gradlint
from gradlint.checking.severity import as_loud_as_evidence
from gradlint.experiments.subject import Subject
from gradlint.experiments.value.explained import agrees_with_autograd, what_explains
from gradlint.experiments.value.solver_tolerance import find_solver, right_when_converged
from gradlint.model.rule import Outcome
from gradlint.rules.catalogue import by_code

GL401 = by_code("GL401")


def normal(*shape: int, seed: int = 0) -> torch.Tensor:
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(*shape, generator=generator, dtype=torch.float64)


def fixed_point(tolerance: float, share: float, ends: Callable[[Any, float], bool]) -> type:
    """z = tanh(W z + x) by iteration, and its implicit gradient with ``share`` of the coupling."""

    class FixedPoint(Function):
        @staticmethod
        def forward(ctx: Any, weight: torch.Tensor, x: torch.Tensor) -> torch.Tensor:
            z = torch.zeros_like(x)
            for _ in range(1000):
                new = torch.tanh(weight @ z + x)
                ended = ends((new - z).norm(), tolerance)
                z = new
                if ended:
                    break
            ctx.save_for_backward(weight, z)
            return z

        @staticmethod
        def backward(ctx: Any, grad: torch.Tensor) -> Any:
            weight, z = ctx.saved_tensors
            slope = 1 - z * z
            coupling = share * (slope[:, None] * weight).mT
            adjoint = slope * torch.linalg.solve(torch.eye(len(z), dtype=z.dtype) - coupling, grad)
            return torch.outer(adjoint, z), adjoint

    return FixedPoint


#: How loops ask whether they have converged.
ENDS = {
    "tensor and number": lambda error, tolerance: error < tolerance,
    "float": lambda error, tolerance: float(error) < tolerance,
    "item": lambda error, tolerance: not error.item() > tolerance,
    "two tensors": lambda error, tolerance: error <= tolerance * torch.ones_like(error),
    "the other way round": lambda error, tolerance: tolerance * torch.ones_like(error) > error,
    "allclose": lambda error, tolerance: torch.allclose(
        error, torch.zeros_like(error), atol=tolerance, rtol=0.0
    ),
}
POINT = (0.25 * normal(4, 4), normal(4, seed=1))


def told(op: Any, *args: Any, probed: Callable[..., Outcome]) -> list[tuple[str, Any]]:
    return loudness(probed(GL401, op, *args))


def loudness(outcome: Outcome) -> list[tuple[str, Any]]:
    """Of each finding, how loud it is as its evidence stands, and what explains it."""
    return [
        (item.severity, item.grounds.explained) for item in as_loud_as_evidence(outcome).findings
    ]


@pytest.mark.parametrize("ends", ENDS.values(), ids=ENDS)
def test_a_loose_tolerance_is_no_fault(
    ends: Callable[..., bool], subject: Callable[..., Subject], probed: Callable[..., Outcome]
) -> None:
    op = fixed_point(1e-3, 1.0, ends)
    bound = subject(op, *POINT)
    solver = bound.once(find_solver)
    assert solver is not None
    assert 1e-5 < solver.error < 1e-2  # of the order of the tolerance
    assert right_when_converged(bound, 0, 1e-2)
    outcome = probed(GL401, op, *POINT)
    found = loudness(outcome)
    assert found
    assert set(found) == {("info", "solver")}
    told_so = outcome.findings[0]
    assert told_so.cause == "solver-tolerance"
    assert f"its outputs are off by {solver.error:.0e} of their size" in told_so.cause_text
    assert "is seen to " in told_so.message


@pytest.mark.parametrize("ends", ENDS.values(), ids=ENDS)
def test_a_wrong_implicit_gradient_is_a_fault_at_any_tolerance(
    ends: Callable[..., bool], probed: Callable[..., Outcome]
) -> None:
    found = told(fixed_point(1e-4, 0.95, ends), *POINT, probed=probed)
    assert ("error", None) in found
    assert "solver" not in [explained for _, explained in found]


def iterated_back(share: float) -> type:
    """The same, where backward iterates to the tolerance of forward, too."""

    class IteratedBack(fixed_point(1e-4, 1.0, ENDS["tensor and number"])):  # type: ignore[misc]
        @staticmethod
        def backward(ctx: Any, grad: torch.Tensor) -> Any:
            weight, z = ctx.saved_tensors
            slope = 1 - z * z
            u = grad
            for _ in range(1000):
                new = grad + share * weight.mT @ (slope * u)
                ended = (new - u).norm() < 1e-4
                u = new
                if ended:
                    break
            return torch.outer(slope * u, z), slope * u

    return IteratedBack


def test_a_loose_tolerance_of_backward_is_no_fault(probed: Callable[..., Outcome]) -> None:
    found = told(iterated_back(1.0), *POINT, probed=probed)
    assert found
    assert set(found) == {("info", "solver")}
    assert ("error", None) in told(iterated_back(0.9), *POINT, probed=probed)


class Threshold(Function):
    """Compares with a small number, and iterates nothing."""

    @staticmethod
    def forward(ctx: Any, x: torch.Tensor) -> torch.Tensor:
        ctx.save_for_backward(x)
        return torch.where(x.abs() < 0.05, x * x, x.sin())

    @staticmethod
    def backward(ctx: Any, grad: torch.Tensor) -> torch.Tensor:
        (x,) = ctx.saved_tensors
        return grad * torch.where(x.abs() < 0.05, x, x.cos())


def test_a_threshold_is_no_tolerance(
    subject: Callable[..., Subject], probed: Callable[..., Outcome]
) -> None:
    x = torch.tensor([0.02, -0.03, 0.7, 1.1], dtype=torch.float64)
    assert subject(Threshold, x).once(find_solver) is None
    assert told(Threshold, x, probed=probed) == [("error", None)]


def through(forward: Callable[..., Any], backward: Callable[..., Any]) -> type:
    return type(
        "Through",
        (Function,),
        {"forward": staticmethod(forward), "backward": staticmethod(backward)},
    )


def cube(ctx: Any, x: torch.Tensor) -> torch.Tensor:
    ctx.save_for_backward(x)
    return x * x * x


def slope_of_cube(ctx: Any, grad: torch.Tensor) -> torch.Tensor:
    (x,) = ctx.saved_tensors
    return 3.0 * grad * x * x


def slightly_wrong(ctx: Any, grad: torch.Tensor) -> torch.Tensor:
    return 1.000001 * slope_of_cube(ctx, grad)


def cube_of_numbers(ctx: Any, x: torch.Tensor) -> torch.Tensor:
    ctx.save_for_backward(x)
    return x * torch.tensor([value * value for value in x.tolist()], dtype=x.dtype)


def cube_detached(ctx: Any, x: torch.Tensor) -> torch.Tensor:
    ctx.save_for_backward(x)
    return x * (x * x).detach()


def slope_of_detached(ctx: Any, grad: torch.Tensor) -> torch.Tensor:
    (x,) = ctx.saved_tensors
    return grad * x * x


class Nested(Function):
    @staticmethod
    def forward(ctx: Any, x: torch.Tensor) -> torch.Tensor:
        return through(cube, slope_of_detached).apply(x)

    @staticmethod
    def backward(ctx: Any, grad: torch.Tensor) -> torch.Tensor:
        return grad


@pytest.mark.parametrize(
    ("op", "agrees"),
    [
        (through(cube, slope_of_cube), True),
        (through(cube, slightly_wrong), False),
        # Autograd is no judge where gradients or numbers leave the graph, and where another
        # Function computes them.
        (through(cube_detached, slope_of_detached), False),
        (through(cube_of_numbers, slope_of_detached), False),
        (Nested, False),
    ],
    ids=["right", "wrong", "detached", "numbers", "nested"],
)
def test_the_second_opinion(op: Any, agrees: bool, subject: Callable[..., Subject]) -> None:
    bound = subject(op, normal(5))
    assert agrees_with_autograd(bound, 0) is agrees
    explained = what_explains(bound, 0, 1e-4).get("explained")
    assert explained == ("measurement" if agrees else None)
    assert what_explains(bound, 0, 0.5).get("explained") is None  # that is not slight


@pytest.mark.parametrize("error", [1e-2, 3e-3])
def test_small_errors_stay_errors(error: float, probed: Callable[..., Outcome]) -> None:
    def forward(ctx: Any, x: torch.Tensor) -> torch.Tensor:
        ctx.save_for_backward(x)
        return x.float().exp().double()

    def backward(ctx: Any, grad: torch.Tensor) -> torch.Tensor:
        return grad * ctx.saved_tensors[0].exp() * (1.0 + error)

    assert told(through(forward, backward), normal(4, 3), probed=probed) == [("error", None)]


def test_one_wrong_element_among_many_stays_an_error(probed: Callable[..., Outcome]) -> None:
    def backward(ctx: Any, grad: torch.Tensor) -> torch.Tensor:
        found = slope_of_cube(ctx, grad).clone()
        found.view(-1)[-1] *= 1.003
        return found

    assert told(through(cube, backward), normal(20, 30), probed=probed) == [("error", None)]


def test_a_truncated_series_is_information(probed: Callable[..., Outcome]) -> None:
    def forward(ctx: Any, x: torch.Tensor) -> torch.Tensor:
        ctx.save_for_backward(x)
        return x - x**3 / 6 + x**5 / 120 - x**7 / 5040

    def backward(ctx: Any, grad: torch.Tensor) -> torch.Tensor:
        return grad * ctx.saved_tensors[0].cos()

    x = torch.tensor([0.8, -0.7, 0.5, -0.9], dtype=torch.float64)
    outcome = as_loud_as_evidence(probed(GL401, through(forward, backward), x))
    assert outcome.verdict == "pass"
    assert [item.severity for item in outcome.findings] == ["info"]
    assert outcome.resolution is not None
    assert 1e-6 < outcome.resolution < 1e-3  # x⁸/8! of the cosine


def resolved(tolerance: float) -> tuple[str, float, str]:
    """Verdict, resolving power and note of GL401 at an iteration with this tolerance."""
    op = fixed_point(tolerance, 1.0, ENDS["float"])
    report = gradlint.check(op, [POINT], select=["GL401"], seed=1)
    (check,) = report.targets[0].checks
    return check.verdict, check.resolution or 0.0, check.note


def test_a_pass_states_how_far_an_iteration_is_from_its_end() -> None:
    verdict, resolution, note = resolved(1e-8)
    assert verdict == "pass"
    assert 1e-9 < resolution < 1e-7
    assert note.startswith("forward iterates, and stops within ")
    converged = resolved(1e-15)
    assert converged[0] == "pass"
    assert converged[2] == ""


def test_a_search_that_ends_early_iterates_to_no_tolerance() -> None:
    class Largest(Function):
        @staticmethod
        def forward(ctx: Any, x: torch.Tensor) -> torch.Tensor:
            for place in range(len(x)):
                if float(x[place]) > 0.0:
                    break
            ctx.save_for_backward(x)
            return x * x[place].sign()

        @staticmethod
        def backward(ctx: Any, grad: torch.Tensor) -> torch.Tensor:
            return grad * (1.0 if bool((ctx.saved_tensors[0] > 0).any()) else -1.0)

    report = gradlint.check(Largest, [(normal(4),)], select=["GL401"], seed=1)
    (check,) = report.targets[0].checks
    assert (check.verdict, check.note) == ("pass", "")


def stored(
    factor: float, *, returned: bool = False, dtype: torch.dtype = torch.float8_e4m3fn
) -> type:
    """x³, keeping x in ``dtype`` for ``factor`` · 3x²; ``returned``: of the x in that dtype."""

    class Stored(Function):
        @staticmethod
        def forward(ctx: Any, x: torch.Tensor) -> torch.Tensor:
            kept = x.to(dtype)
            ctx.save_for_backward(kept)
            ctx.dtype = x.dtype
            return (kept.to(x.dtype) if returned else x) ** 3

        @staticmethod
        def backward(ctx: Any, grad: torch.Tensor) -> torch.Tensor:
            (kept,) = ctx.saved_tensors
            return factor * grad * 3 * kept.to(ctx.dtype) ** 2

    return Stored


@pytest.mark.parametrize(
    ("op", "verdict", "explained"),
    [
        (stored(1.0), "pass", "stored"),
        (stored(2.0), "fail", None),
        (stored(1.0, returned=True), "fail", None),  # a surrogate of rounding
    ],
)
def test_numbers_kept_in_8_bits_for_backward(
    probed: Callable[..., Outcome], op: type, verdict: str, explained: str | None
) -> None:
    outcome = as_loud_as_evidence(probed(GL401, op, normal(3, 4)))
    (finding,) = outcome.findings
    assert (outcome.verdict, finding.grounds.explained) == (verdict, explained)
    assert (finding.severity == "info") is (verdict == "pass")


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_numbers_kept_in_16_bits_for_backward_are_the_cause(
    probed: Callable[..., Outcome], dtype: torch.dtype
) -> None:
    outcome = as_loud_as_evidence(probed(GL401, stored(1.0, dtype=dtype), normal(3, 4)))
    (finding,) = outcome.findings
    loud = "error" if dtype is torch.bfloat16 else "info"  # 4e-3 of the gradient, and 5e-4
    assert (finding.cause, finding.severity) == ("low-precision", loud)
    assert f"forward casts to {str(dtype)[6:]} what it keeps for backward" in finding.cause_text


def test_a_function_of_rounded_numbers_is_judged_without_the_rounding(
    probed: Callable[..., Outcome],
) -> None:
    right = stored(1.0, returned=True, dtype=torch.bfloat16)
    assert probed(GL401, right, normal(3, 4)).verdict == "pass"
    (finding,) = probed(
        GL401, stored(2.0, returned=True, dtype=torch.bfloat16), normal(3, 4)
    ).findings
    assert "forward casts" not in finding.cause_text


def called(scale: float) -> type:
    """What a function returns, and ``scale`` times its own gradient, as if it were linear."""

    class Through(Function):
        @staticmethod
        def forward(ctx: Any, x: torch.Tensor, matmul: Any) -> torch.Tensor:
            ctx.matmul = matmul
            return matmul(x, transpose=True)

        @staticmethod
        def backward(ctx: Any, grad: torch.Tensor) -> Any:
            return scale * ctx.matmul(grad, transpose=False), None

    return Through


class Differentiated(Function):
    """Twice the gradient of what a function returns."""

    @staticmethod
    def forward(ctx: Any, x: torch.Tensor, function: Any) -> torch.Tensor:
        ctx.save_for_backward(x)
        ctx.function = function
        return function(x)

    @staticmethod
    def backward(ctx: Any, grad: torch.Tensor) -> Any:
        (x,) = ctx.saved_tensors
        with torch.enable_grad():
            x = x.detach().requires_grad_()
            y = ctx.function(x)
        return 2 * torch.autograd.grad(y, x, grad)[0], None


def test_a_function_that_was_guessed_is_in_question_too() -> None:
    flags = {"seed": 0, "order": 1, "select": ["GL401"]}
    (guessed,) = gradlint.check(called(1.0), **flags).targets
    (finding,) = guessed.findings
    # Only the op's own function returns the product with the transpose.
    assert (finding.severity, finding.grounds.explained) == ("info", "called")
    (guessed,) = gradlint.check(Differentiated, **flags).targets
    (finding,) = guessed.findings
    assert (finding.severity, finding.grounds.explained) == ("warning", "stand-in")
    weight = normal(4, 4, seed=1)

    def matmul(x: torch.Tensor, *, transpose: bool) -> torch.Tensor:
        return x @ (weight.mT if transpose else weight)

    x = normal(3, 4).requires_grad_()
    assert gradlint.check(called(1.0), [(x, matmul)], **flags).targets[0].findings == []
    (wrong,) = gradlint.check(called(2.0), [(x, matmul)], **flags).targets
    assert [(item.severity, item.cause) for item in wrong.findings] == [("error", "scaled")]


def artanh(masked: bool, bound: float, scale: float = 1.0) -> type:
    """Of values clamped to ``bound``, with or without the mask of the clamp in backward."""

    class Artanh(Function):
        @staticmethod
        def forward(ctx: Any, x: torch.Tensor) -> torch.Tensor:
            kept = x.clamp(-bound, bound)
            ctx.save_for_backward(x, kept)
            return ((1 + scale * kept) / (1 - scale * kept)).log()

        @staticmethod
        def backward(ctx: Any, grad: torch.Tensor) -> torch.Tensor:
            x, kept = ctx.saved_tensors
            found = 2 * scale * grad / (1 - (scale * kept) ** 2)
            return found * (x.abs() <= bound) if masked else found

    return Artanh


@pytest.mark.parametrize(
    ("op", "values", "severity"),
    [
        (artanh(False, 1 - 1e-5), 0.8, "info"),  # right, but at the ends, which gradlint chose
        (artanh(False, 1 - 1e-5), 1.5, "error"),  # they were given
        (artanh(False, 1 - 1e-5, scale=0.1), 0.8, "error"),  # a clamp that guards nothing
        (artanh(True, 1 - 1e-5), 0.8, ""),
        (artanh(True, 1 - 1e-5), 1.5, ""),
    ],
)
def test_beyond_a_clamp_that_keeps_forward_finite(op: type, values: float, severity: str) -> None:
    x = torch.linspace(-values, values, 12, dtype=torch.float64).reshape(3, 4) + 0.01
    flags = {"seed": 0, "order": 1, "select": ["GL401", "GL402"]}
    (report,) = gradlint.check(op, [(x.requires_grad_(),)], **flags).targets
    assert {item.severity for item in report.findings} == ({severity} if severity else set())


def test_guesses_beyond_a_clamp_are_in_question() -> None:
    flags = {"seed": 0, "order": 1, "select": ["GL401"]}
    (report,) = gradlint.check(artanh(False, 1 - 1e-5), **flags).targets
    assert {item.severity for item in report.findings} == {"warning"}
    (report,) = gradlint.check(artanh(False, 1 - 1e-5, scale=0.1), **flags).targets
    assert {item.severity for item in report.findings} == {"error"}


def contact(masked: bool) -> type:
    """A force p^1.5·(1 + v)₊ of a depth p that is clamped at zero, where a power has a slope; the
    other clamp, at which the force ends, is masked in backward or not."""

    class Contact(Function):
        @staticmethod
        def forward(ctx: Any, p: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
            ctx.save_for_backward(p, v)
            return p.clamp(min=0) ** 1.5 * (1 + v).clamp(min=0)

        @staticmethod
        def backward(ctx: Any, grad: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
            p, v = ctx.saved_tensors
            on = (p > 0) & (v > -1) if masked else p > 0
            depth = torch.where(on, p, torch.ones_like(p))
            grad = torch.where(on, grad, torch.zeros_like(grad))
            return grad * 1.5 * depth.sqrt() * (1 + v), grad * depth**1.5

    return Contact


@pytest.mark.parametrize("masked", [True, False])
def test_a_guard_says_nothing_of_elements_that_it_does_not_bound(masked: bool) -> None:
    flags = {"seed": 0, "order": 1, "select": ["GL401", "GL402"]}
    (report,) = gradlint.check(contact(masked), **flags).targets
    loud = {item.input for item in report.findings if item.severity != "info"}
    assert loud == (set() if masked else {"p", "v"})


def pooled(count: Callable[..., torch.Tensor], gathered: bool) -> type:
    """The mean of the rows of each of three groups, whose backward divides by the count of the
    group, or forgets to gather that by group."""

    class Pooled(Function):
        @staticmethod
        def forward(ctx: Any, x: torch.Tensor, groups: torch.Tensor) -> torch.Tensor:
            counts = count(x, groups).clamp(min=1)
            ctx.save_for_backward(groups, counts)
            return x.new_zeros(3, x.shape[1]).index_add(0, groups, x) / counts[:, None]

        @staticmethod
        def backward(ctx: Any, grad: torch.Tensor) -> tuple[torch.Tensor, None]:
            groups, counts = ctx.saved_tensors
            return grad[groups] / (counts[groups] if gathered else counts)[:, None], None

    return Pooled


def in_integers(x: torch.Tensor, groups: torch.Tensor) -> torch.Tensor:
    return torch.bincount(groups, minlength=3)


def in_floats(x: torch.Tensor, groups: torch.Tensor) -> torch.Tensor:
    return x.new_zeros(3).index_add(0, groups, x.new_ones(len(groups)))


@pytest.mark.parametrize("count", [in_integers, in_floats])
@pytest.mark.parametrize("gathered", [True, False])
def test_a_clamp_of_what_no_input_moves_keeps_nothing_finite(
    count: Callable[..., torch.Tensor], gathered: bool
) -> None:
    flags = {"seed": 0, "order": 1, "select": ["GL401"]}
    (report,) = gradlint.check(pooled(count, gathered), **flags).targets
    assert {item.severity for item in report.findings} == (set() if gathered else {"error"})


class Listwise(Function):
    """Weighted scores.

    Args:
        scores: (N, L)
        gains: (N, L), taken as a constant
    """

    @staticmethod
    def forward(ctx: Any, scores: torch.Tensor, gains: torch.Tensor) -> torch.Tensor:
        ctx.save_for_backward(scores, gains)
        return (scores * gains.exp()).sum(-1)

    @staticmethod
    def backward(ctx: Any, grad: torch.Tensor) -> Any:
        _, gains = ctx.saved_tensors
        return grad[:, None] * gains.exp(), torch.zeros_like(gains)


class WithoutWords(Listwise):
    """Scores, weighted with gains that are constant along a row."""


class HalfAGradient(Listwise):
    """Weighted scores. Args: scores: (N, L); gains: (N, L), taken as a constant."""

    @staticmethod
    def backward(ctx: Any, grad: torch.Tensor) -> Any:
        scores, gains = ctx.saved_tensors
        return grad[:, None] * gains.exp(), 0.5 * grad[:, None] * scores * gains.exp()


class WrongForScores(Listwise):
    """Weighted scores. Args: scores: (N, L); gains: (N, L), taken as a constant."""

    @staticmethod
    def backward(ctx: Any, grad: torch.Tensor) -> Any:
        scores, gains = ctx.saved_tensors
        return torch.zeros_like(scores), torch.zeros_like(gains)


@pytest.mark.parametrize(
    ("op", "expected"),
    [
        (Listwise, [("info", "constant")]),
        (WithoutWords, [("error", None)]),
        (HalfAGradient, [("error", None)]),
        (WrongForScores, [("error", None), ("info", "constant")]),
    ],
)
def test_zeros_for_a_documented_constant(
    op: type, expected: list[tuple[str, Any]], probed: Callable[..., Outcome]
) -> None:
    scores, gains = normal(3, 4).requires_grad_(), normal(3, 4, seed=1).requires_grad_()
    assert told(op, scores, gains, probed=probed) == expected


class NoneForGains(Listwise):
    """Weighted scores. Args: scores: (N, L); gains: (N, L), taken as a constant."""

    @staticmethod
    def backward(ctx: Any, grad: torch.Tensor) -> Any:
        _, gains = ctx.saved_tensors
        return grad[:, None] * gains.exp(), None


class NoneWithoutWords(NoneForGains):
    """Weighted scores."""


@pytest.mark.parametrize(
    ("op", "severity"), [(NoneForGains, "info"), (NoneWithoutWords, "warning")]
)
def test_none_for_a_documented_constant(
    op: type, severity: str, probed: Callable[..., Outcome]
) -> None:
    scores, gains = normal(3, 4).requires_grad_(), normal(3, 4, seed=1).requires_grad_()
    outcome = as_loud_as_evidence(probed(by_code("GL103"), op, scores, gains))
    assert [(item.input, item.severity) for item in outcome.findings] == [("gains", severity)]


def bisection(share: float) -> type:
    """The z of each row for which relu(x - z) sums to one, and its implicit gradient."""

    class Bisection(Function):
        @staticmethod
        def forward(ctx: Any, x: torch.Tensor, num_iters: int = 5) -> torch.Tensor:
            low, high = x.amax(-1, keepdim=True) - 1, x.amax(-1, keepdim=True)
            for _ in range(num_iters):
                z = (low + high) / 2
                above = (x - z).relu().sum(-1, keepdim=True) > 1
                low, high = torch.where(above, z, low), torch.where(above, high, z)
            ctx.save_for_backward(x > low)
            return (low + high) / 2

        @staticmethod
        def backward(ctx: Any, grad: torch.Tensor) -> Any:
            (chosen,) = ctx.saved_tensors
            return share * grad * chosen / chosen.sum(-1, keepdim=True), None

    return Bisection


def severities(report: Any) -> set[tuple[str, str, Any]]:
    return {
        (item.code, item.severity, item.grounds.explained)
        for target in report.targets
        for item in target.findings
    }


def test_few_iterations_that_nobody_gave_are_no_fault() -> None:
    report = gradlint.check(bisection(1.0), select=["GL401"], order=1, seed=0)
    assert severities(report) == {("GL401", "info", "solver")}
    (finding,) = report.targets[0].findings
    assert "with a tighter tolerance or 60 iterations the gradient" in finding.cause_text
    assert report.targets[0].checks[0].resolution < 1e-6  # of the converged gradient


def bisected(share: float) -> type:
    """A bisection that ends where all rows are within a tolerance, or within a bracket of several
    elements, whose width the tolerance gives."""

    class Bisected(Function):
        @staticmethod
        def forward(ctx: Any, x: torch.Tensor, tolerance: float) -> torch.Tensor:
            low, high = x.amax(-1, keepdim=True) - 1, x.amax(-1, keepdim=True)
            while True:
                z = (low + high) / 2
                gap = (x - z).relu().sum(-1, keepdim=True) - 1
                if bool(((gap.abs() <= tolerance) | (high - low <= tolerance)).all()):
                    break
                low, high = torch.where(gap > 0, z, low), torch.where(gap > 0, high, z)
            ctx.save_for_backward(x > z)
            return z

        @staticmethod
        def backward(ctx: Any, grad: torch.Tensor) -> Any:
            (chosen,) = ctx.saved_tensors
            return share * grad * chosen / chosen.sum(-1, keepdim=True), None

    return Bisected


@pytest.mark.parametrize(
    ("share", "expected"),
    [(1.0, {("GL401", "info", "solver")}), (0.9, {("GL401", "error", None)})],
)
def test_a_tolerance_among_the_arguments_is_tightened(
    share: float, expected: set[tuple[str, str, Any]]
) -> None:
    x = normal(3, 4).requires_grad_()
    report = gradlint.check(bisected(share), [(x, 1e-3)], select=["GL401"], order=1, seed=0)
    assert severities(report) == expected


def test_a_wrong_implicit_gradient_is_a_fault_after_few_iterations() -> None:
    report = gradlint.check(bisection(0.9), select=["GL401"], order=1, seed=0)
    assert severities(report) == {("GL401", "error", None)}


def test_few_iterations_that_were_given_are_judged_as_they_are() -> None:
    x = normal(3, 4).requires_grad_()
    report = gradlint.check(bisection(1.0), (x, 5), select=["GL401"], order=1, seed=0)
    assert severities(report) == {("GL401", "error", None)}


def balanced(order: int) -> type:
    """Rows and columns that sum to one in turn, and the gradient through all steps, in the order
    of the steps or against it."""

    class Balanced(Function):
        @staticmethod
        def forward(ctx: Any, scores: torch.Tensor, n_iters: int = 5) -> torch.Tensor:
            steps, z = [], scores
            for dim in (-1, -2) * n_iters:
                z = z - z.logsumexp(dim, keepdim=True)
                steps.append(z)
            ctx.save_for_backward(*steps)
            return z.exp()

        @staticmethod
        def backward(ctx: Any, grad: torch.Tensor) -> Any:
            steps = ctx.saved_tensors
            grad = grad * steps[-1].exp()
            dims = (-1, -2) * (len(steps) // 2)
            for z, dim in zip(reversed(steps), dims[::order], strict=True):
                grad = grad - z.exp() * grad.sum(dim, keepdim=True)
            return grad, None

    return Balanced


def test_a_gradient_through_few_iterations_is_judged_as_it_is() -> None:
    """The steps in the wrong order are right in the limit, and that is not what it goes through."""
    report = gradlint.check(balanced(1), select=["GL401"], order=1, seed=0)
    assert severities(report) == {("GL401", "error", None)}
    assert gradlint.check(balanced(-1), select=["GL401"], order=1, seed=0).ok
