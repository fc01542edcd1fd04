"""GL401: planted faults that must be caught with their cause, near misses that must pass."""

from __future__ import annotations

import pytest
import torch

from gradlint.checking.severity import decided
from gradlint.experiments.subject import Subject
from gradlint.model.rule import Outcome
from gradlint.model.sample import Sample
from gradlint.model.settings import Settings
from gradlint.report import wording
from gradlint.rules.value import wrong_gradient
from gradlint.targets.build import from_object


def make(forward, backward, name="Planted"):
    """A Function from forward(ctx, …) and backward(ctx, grad)."""
    return type(
        name,
        (torch.autograd.Function,),
        {"forward": staticmethod(forward), "backward": staticmethod(backward)},
    )


def sample(*shapes, dtype=torch.float64, seed=0):
    generator = torch.Generator().manual_seed(seed)
    args = tuple(
        torch.randn(shape, generator=generator, dtype=dtype).requires_grad_()
        if isinstance(shape, tuple)
        else shape
        for shape in shapes
    )
    return Sample("test", "--inputs", args)


def outcome(op, arguments, seed=3) -> Outcome:
    subject = Subject(from_object(op), arguments, Settings(seed=seed))
    return wrong_gradient.probe(subject)


def square(factor):
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * x

    def backward(ctx, grad_output):
        (x,) = ctx.saved_tensors
        return factor * x * grad_output

    return make(forward, backward)


def matmul(swap=False, transpose=""):
    def forward(ctx, a, b):
        ctx.save_for_backward(a, b)
        return a @ b

    def backward(ctx, grad_output):
        a, b = ctx.saved_tensors
        grads = {"a": grad_output @ b.mT, "b": a.mT @ grad_output}
        if transpose:
            grads[transpose] = grads[transpose].mT
        return (grads["b"], grads["a"]) if swap else (grads["a"], grads["b"])

    return make(forward, backward)


def exp_with(backward):
    def forward(ctx, x):
        y = x.exp()
        ctx.save_for_backward(x, y)
        return y

    return make(forward, backward)


def zero_one(position):
    def backward(ctx, grad_output):
        _, y = ctx.saved_tensors
        gradient = grad_output * y
        gradient.view(-1)[position] = 0
        return gradient

    return exp_with(backward)


def wrong_last_column(ctx, grad_output):
    _, y = ctx.saved_tensors
    gradient = grad_output * y
    gradient[:, -1] *= 3
    return gradient


FAULTS = [
    # op, shapes, wrong inputs, cause, word in the cause's text
    (square(1.0), [(3, 4)], {"x"}, "scaled", "times 2"),
    (square(-2.0), [(3, 4)], {"x"}, "sign", "opposite"),
    (square(2 / 7), [(3, 4)], {"x"}, "scaled", "times 7"),
    (square(0.0), [(3, 4)], {"x"}, "zero", "zeros"),
    (square(2.02), [(3, 4)], {"x"}, "scaled", "0.990099"),
    (matmul(transpose="b"), [(5, 4), (4, 4)], {"b"}, "transposed", ".mT"),
    (matmul(swap=True), [(4, 4), (4, 4)], {"a", "b"}, "swapped", "`b`"),
    (exp_with(lambda ctx, g: ctx.saved_tensors[1]), [(3, 4)], {"x"}, "ignores-grad-output", ""),
    (exp_with(lambda ctx, g: g), [(3, 4)], {"x"}, "straight-through", "unchanged"),
    (exp_with(lambda ctx, g: g.abs() * ctx.saved_tensors[1]), [(3, 4)], {"x"}, "not-linear", ""),
    (
        exp_with(lambda ctx, g: g * ctx.saved_tensors[1] + 0.3),
        [(5,)],
        {"x"},
        "additive-constant",
        "",
    ),
    (
        exp_with(lambda ctx, g: (g * ctx.saved_tensors[1]).clamp(max=2.0)),
        [(9,)],
        {"x"},
        "not-linear",
        "",
    ),
    (exp_with(lambda ctx, g: g * ctx.saved_tensors[1].roll(1)), [(6,)], {"x"}, None, ""),
    (exp_with(wrong_last_column), [(4, 5)], {"x"}, "one-slice", "last"),
    (zero_one(7), [(4, 5)], {"x"}, "one-element", "[1, 2]"),
    (zero_one(1234), [(40, 50)], {"x"}, "one-element", "[24, 34]"),
]


@pytest.mark.parametrize(("op", "shapes", "inputs", "cause", "word"), FAULTS)
def test_planted_faults_are_caught_and_named(op, shapes, inputs, cause, word):
    found = outcome(op, sample(*shapes))
    assert found.verdict == "fail"
    assert {finding.input for finding in found.findings} == inputs
    for finding in found.findings:
        assert finding.code == "GL401"
        assert finding.severity == "error"
        assert finding.cause == cause
        assert word in finding.cause_text
        worst = finding.evidence["elements"][0]
        assert worst["index"] == finding.index
        assert worst["error"] == pytest.approx(abs(worst["returned"] - worst["measured"]), rel=1e-6)


def test_measured_elements_are_the_true_derivative():
    finding = outcome(zero_one(7), sample((4, 5))).findings[0]
    worst = finding.evidence["elements"][0]
    assert worst["index"] == [1, 2]
    assert worst["returned"] == 0.0
    assert worst["measured"] != 0.0
    assert finding.evidence["differing"] == 1


def test_the_error_of_each_measured_element_is_kept():
    finding = outcome(zero_one(7), sample((4, 4))).findings[0]
    kept = finding.evidence["error_map"]
    assert kept["shape"] == [4, 4]
    assert kept["positions"] == list(range(16))
    wrong = {place for place, error in enumerate(kept["errors"]) if error > 0.0}
    assert wrong == {7}
    worst = finding.evidence["elements"][0]["error"]
    assert kept["errors"][7] == pytest.approx(worst, rel=1e-2)
    # Of a large gradient, those that were measured.
    finding = outcome(zero_one(77), sample((100, 100))).findings[0]
    kept = finding.evidence["error_map"]
    assert kept["shape"] == [100, 100]
    assert len(kept["positions"]) == len(kept["errors"]) < 100
    assert 77 in kept["positions"]


def test_rounding_is_named_straight_through_and_is_a_warning():
    op = make(lambda ctx, x: x.round(), lambda ctx, g: g)
    found = outcome(op, sample((3, 4)))
    assert [finding.cause for finding in found.findings] == ["straight-through"]
    assert [finding.severity for finding in found.findings] == ["warning"]


def test_faulty_output_is_named():
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * x, x.exp()

    def backward(ctx, first, second):
        (x,) = ctx.saved_tensors
        return 2 * x * first + second

    finding = outcome(make(forward, backward), sample((3, 4))).findings[0]
    assert (finding.input, finding.output) == ("x", "output[1]")


def test_every_faulty_output_is_named():
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * x, x.exp(), x.sin()

    def backward(ctx, first, second, third):
        (x,) = ctx.saved_tensors
        return first + second + third * x.cos()

    finding = outcome(make(forward, backward), sample((3, 4))).findings[0]
    assert finding.output is None
    assert finding.evidence["outputs"] == ["output[0]", "output[1]"]
    assert wording.where(finding).startswith("outputs `output[0]`, `output[1]`, index [")


def test_complex_conjugate_is_named():
    def backward(ctx, grad_output):
        (x,) = ctx.saved_tensors
        return grad_output * 2 * x

    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * x

    found = outcome(make(forward, backward), sample((3, 4), dtype=torch.complex128))
    # grad·2x for grad·conj(2x): the conjugate is missing in the factor beside grad_output
    assert found.verdict == "fail"
    assert found.findings[0].cause == "conjugate"

    def of_real(ctx, grad_output):
        (x,) = ctx.saved_tensors
        return grad_output * 2 * x.conj()

    def absolute(ctx, x):
        ctx.save_for_backward(x)
        return (x * x.conj()).real

    wrong = outcome(make(absolute, of_real), sample((3, 4), dtype=torch.complex128))
    assert [finding.cause for finding in wrong.findings] == ["conjugate"]


RIGHT = {
    "square": (square(2.0), [(3, 4)]),
    "matmul": (matmul(), [(5, 4), (4, 3)]),
    "relu at zeros": (torch.relu, [torch.zeros(3, 4, dtype=torch.float64, requires_grad=True)]),
    "abs at zeros": (torch.abs, [torch.zeros(3, dtype=torch.float64, requires_grad=True)]),
    "max of ties": (
        lambda x: x.max(),
        [torch.tensor([1.0, 1.0, 0.0], dtype=torch.float64, requires_grad=True)],
    ),
    "dropout": (lambda x: torch.nn.functional.dropout(x, 0.5, True), [(6, 7)]),
    "float32 inside": (lambda x: x.float().tanh().double(), [(3, 4)]),
    "offset": (lambda x: x + 1e8, [(3, 4)]),
    "constant": (lambda x: x * 0, [(3, 4)]),
    "step": (torch.sign, [(3, 4)]),
    "0-d": (lambda x: x.exp(), [()]),
    "log near zero": (
        torch.log,
        [torch.full((4,), 1e-5, dtype=torch.float64, requires_grad=True)],
    ),
    "sort": (lambda x: x.sort(-1)[0], [(3, 4)]),
}


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("name", RIGHT)
def test_right_ops_pass(name, seed):
    op, shapes = RIGHT[name]
    tensors = [shape for shape in shapes if not isinstance(shape, tuple)]
    arguments = (
        Sample("test", "--inputs", tuple(tensors)) if tensors else sample(*shapes, seed=seed)
    )
    found = outcome(op, arguments, seed=seed)
    assert [finding.message for finding in found.findings] == []
    assert found.verdict == "pass"


def test_resolution_is_stated_and_small():
    found = outcome(square(2.0), sample((3, 4)))
    assert found.resolution is not None
    assert 0 < found.resolution < 1e-8


def test_few_digits_in_a_constant_are_information():
    found = outcome(square(2.0000001), sample((3, 4)))
    assert found.verdict == "pass"
    assert [finding.severity for finding in found.findings] == ["info"]
    assert found.findings[0].evidence["relative_error"] == pytest.approx(5e-8, rel=0.5)


def test_a_float32_cast_in_backward_is_information_with_its_cause():
    op = exp_with(lambda ctx, g: (g * ctx.saved_tensors[1]).float().double())
    found = outcome(op, sample((3, 4)))
    assert [finding.cause for finding in found.findings] == ["low-precision"]
    assert "float32" in found.findings[0].cause_text


LOW = pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])


@LOW
@pytest.mark.parametrize("factor", [1.0003, 1.003])
def test_the_size_of_an_error_in_low_precision_is_that_in_float64(factor, dtype):
    op = exp_with(lambda ctx, g: g * ctx.saved_tensors[1] * factor)
    (finding,) = outcome(op, sample((3, 4), dtype=dtype)).findings
    assert finding.evidence["relative_error"] == pytest.approx(factor - 1, rel=1e-3)
    assert finding.grounds.relative_error == pytest.approx(factor - 1, rel=1e-3)


@LOW
def test_float32_inside_is_no_loss_to_lower_dtypes(dtype):
    op = exp_with(lambda ctx, g: (g.float() * ctx.saved_tensors[1].float()).to(g.dtype))
    found = outcome(op, sample((3, 4), dtype=dtype))
    assert (found.verdict, found.findings) == ("pass", [])


def gelu_with(share: float):
    """x·Φ(x) by the tanh, in float32 inside 16 bits; backward takes ``share`` of the second term
    in bfloat16, and all of it in every other dtype."""

    def slope(x):
        t = torch.tanh(0.7978845608 * (x + 0.044715 * x**3))
        return t, 0.5 * x * (1 - t * t) * 0.7978845608 * (1 + 0.134145 * x * x)

    def wide(x):
        return x.float() if x.dtype == torch.bfloat16 else x

    def forward(ctx, x, bias):
        h = x + bias
        ctx.save_for_backward(h)
        t, _ = slope(wide(h))
        return (0.5 * wide(h) * (1 + t)).to(x.dtype)

    def backward(ctx, grad_output):
        (h,) = ctx.saved_tensors
        t, second = slope(wide(h))
        taken = share if h.dtype == torch.bfloat16 else 1.0
        gradient = wide(grad_output) * (0.5 * (1 + t) + taken * second)
        return gradient.to(h.dtype), gradient.sum(0).to(h.dtype)

    return make(forward, backward)


def test_a_fault_in_bfloat16_alone_is_shown_by_the_elements_of_float64():
    found = outcome(gelu_with(2.0), sample((4, 9), (9,), dtype=torch.bfloat16))
    assert [finding.input for finding in found.findings] == ["x", "bias"]
    for finding in found.findings:
        assert decided(finding.severity, finding.grounds) == ("error", "")
        assert finding.grounds.beyond_bar is True
        assert finding.grounds.element_error > 0.1
        assert finding.evidence["in float64"] == "right"
        assert all("float64" in element for element in finding.evidence["elements"])
        assert "in float64 the gradient" in finding.help


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.bfloat16])
def test_the_same_without_that_fault_passes(dtype):
    found = outcome(gelu_with(1.0), sample((4, 9), (9,), dtype=dtype))
    assert (found.verdict, found.findings) == ("pass", [])


def test_detached_output_that_depends_on_its_input():
    found = outcome(lambda x: x.detach() * 3, sample((3, 4)))
    assert [finding.cause for finding in found.findings] == ["zero"]
    assert outcome(lambda x: x.detach().round(), sample((3, 4))).verdict == "inconclusive"


def test_declared_surrogate_is_compared_exactly():
    class Clipped(torch.autograd.Function):
        surrogate = {"x": "grad_output * (abs(x) <= 1)"}  # noqa: RUF012

        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x.sign()

        @staticmethod
        def backward(ctx, grad_output):
            (x,) = ctx.saved_tensors
            return grad_output * (x.abs() <= 1)

    class Unclipped(Clipped):
        @staticmethod
        def backward(ctx, grad_output):
            return grad_output

    assert outcome(Clipped, sample((30, 4))).verdict == "pass"
    wrong = outcome(Unclipped, sample((30, 4)))
    assert wrong.verdict == "fail"
    assert wrong.findings[0].input == "x"


def test_two_wrong_elements_far_apart_are_not_one():
    """Bisection finds both; the cause does not claim that one alone is wrong."""

    def backward(ctx, grad_output):
        _, y = ctx.saved_tensors
        gradient = grad_output * y
        gradient.view(-1)[[3, 1777]] = 0
        return gradient

    found = outcome(exp_with(backward), sample((40, 50)))
    (finding,) = found.findings
    assert finding.cause is None
    assert {tuple(each["index"]) for each in finding.evidence["elements"][:2]} == {
        (0, 3),
        (35, 27),
    }


def test_a_clamp_that_only_some_cotangents_reach_is_no_wrong_element():
    """Under one cotangent a single element is clamped: nothing is said of that element alone."""

    def backward(ctx, grad_output):
        _, y = ctx.saved_tensors
        return (grad_output * y).clamp(-2.5, 2.5)

    for seed in range(6):
        for finding in outcome(exp_with(backward), sample((4, 5)), seed=seed).findings:
            assert finding.cause == "not-linear"


def test_a_scalar_beside_the_input_that_is_wrong():
    def forward(ctx, x, scale):
        ctx.save_for_backward(x, scale)
        return scale * x * x

    def backward(ctx, grad_output):
        x, scale = ctx.saved_tensors
        return scale * x * grad_output, (x * x * grad_output).sum()

    found = outcome(make(forward, backward), sample((3, 4), ()))
    assert [(item.input, item.cause) for item in found.findings] == [("x", "scaled")]
