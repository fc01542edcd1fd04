"""GL401 on ops that round: what belongs to a surrogate is warned of, what does not is an error."""

from __future__ import annotations

import torch

from gradlint.checking.severity import decided
from gradlint.experiments.subject import Subject
from gradlint.model.rule import Outcome
from gradlint.model.sample import Sample
from gradlint.model.settings import Settings
from gradlint.rules.value import wrong_gradient
from gradlint.targets.build import from_object


class LearnedStep(torch.autograd.Function):
    """Rounding to multiples of a step size, whose gradient is that of learned step sizes."""

    @staticmethod
    def forward(ctx, x, step):
        ctx.save_for_backward(x, step)
        return (x / step).round() * step

    @staticmethod
    def backward(ctx, grad):
        x, step = ctx.saved_tensors
        ratio = x / step
        return 0.7 * grad, (grad * (ratio.round() - ratio)).sum() * 0.3


class PassedOn(LearnedStep):
    @staticmethod
    def backward(ctx, grad):
        x, step = ctx.saved_tensors
        ratio = x / step
        return grad, (grad * (ratio.round() - ratio)).sum()


class RightStep(LearnedStep):
    @staticmethod
    def backward(ctx, grad):
        x, step = ctx.saved_tensors
        return grad, (grad * (x / step).round()).sum()


class NotRounded(torch.autograd.Function):
    """A factor wrong beside a gradient that is passed on, but nothing is rounded."""

    @staticmethod
    def forward(ctx, x, step):
        ctx.save_for_backward(x, step)
        return x * x * step

    @staticmethod
    def backward(ctx, grad):
        x, _ = ctx.saved_tensors
        return grad, (grad * x * x).sum() * 0.3


class Ternary(torch.autograd.Function):
    """Rounds in units of the mean: the derivative is not zero, and the gradient is passed on."""

    @staticmethod
    def forward(ctx, x, step):
        scale = x.abs().mean()
        return (x / scale).round().clamp(-1.0, 1.0) * scale

    @staticmethod
    def backward(ctx, grad):
        return grad, None


class Smooth(Ternary):
    """The same without rounding: the gradient is forgotten."""

    @staticmethod
    def forward(ctx, x, step):
        scale = x.abs().mean()
        return (x / scale).tanh() * scale


def outcome(op: type[torch.autograd.Function]) -> Outcome:
    generator = torch.Generator().manual_seed(0)
    x = torch.randn(3, 4, generator=generator, dtype=torch.float64).requires_grad_()
    step = torch.tensor(0.37, dtype=torch.float64, requires_grad=True)
    arguments = Sample("test", "--inputs", (x, step))
    return wrong_gradient.probe(Subject(from_object(op), arguments, Settings(seed=3)))


def test_the_gradient_of_a_step_size_is_part_of_the_surrogate():
    found = {item.input: item for item in outcome(LearnedStep).findings}
    assert {name: item.severity for name, item in found.items()} == {
        "x": "warning",
        "step": "warning",
    }
    assert found["x"].cause == "straight-through"
    assert "part of the same surrogate" in found["step"].help


def test_the_derivative_with_rounding_as_the_identity_is_recognised():
    found = {item.input: item for item in outcome(PassedOn).findings}
    assert {name: item.severity for name, item in found.items()} == {
        "x": "warning",
        "step": "warning",
    }
    assert all("rounding taken as the identity" in item.help for item in found.values())
    assert all("identity" not in item.help for item in outcome(LearnedStep).findings)


def test_one_that_is_right_is_not_mentioned():
    assert [item.input for item in outcome(RightStep).findings] == ["x"]


def test_nothing_is_a_surrogate_where_nothing_is_rounded():
    assert [item.severity for item in outcome(NotRounded).findings] == ["error", "error"]


class Documented(torch.autograd.Function):
    """Rounding to 16 levels by the straight-through estimator."""

    @staticmethod
    def forward(ctx, x, step):
        ctx.save_for_backward(x, step)
        return (x / step).round().clamp(-8, 7) * step

    @staticmethod
    def backward(ctx, grad):
        x, step = ctx.saved_tensors
        ratio = x / step
        inside = (ratio >= -8) & (ratio <= 7)
        slope = torch.where(inside, ratio.round() - ratio, ratio.round().clamp(-8, 7))
        return grad * inside, (grad * slope).sum()


class Unbounded(Documented):
    """Rounding by the straight-through estimator, which passes beyond the levels too."""

    @staticmethod
    def backward(ctx, grad):
        return grad, Documented.backward(ctx, grad)[1]


class Sign(torch.autograd.Function):
    """Signs; straight-through where |x| <= 1."""

    @staticmethod
    def forward(ctx, x, step):
        ctx.save_for_backward(x)
        return torch.where(x >= 0, 1.0, -1.0).to(x.dtype)

    @staticmethod
    def backward(ctx, grad):
        (x,) = ctx.saved_tensors
        return grad * (x.abs() <= 1), None


class SignEverywhere(Sign):
    """Signs; straight-through where |x| <= 1, says the text."""

    @staticmethod
    def backward(ctx, grad):
        return grad, None


class PassedOnSTE(PassedOn):
    pass


def loudness(op: type[torch.autograd.Function]) -> dict[str | None, str]:
    return {i.input: decided(i.severity, i.grounds)[0] for i in outcome(op).findings}


def test_a_documented_surrogate_is_information_if_the_gradient_is_that():
    assert loudness(Documented) == {"x": "info", "step": "info"}
    assert loudness(Unbounded)["x"] == "warning"  # seen only beyond the values of the sample
    assert loudness(PassedOn) == {"x": "info", "step": "info"}  # nothing is said, but it is usual
    assert loudness(PassedOnSTE) == {"x": "info", "step": "info"}  # but by its name


def test_signs_pass_gradients_within_the_bound_that_is_documented():
    assert loudness(Sign) == {"x": "info"}
    assert loudness(SignEverywhere) == {"x": "warning"}


class Spike(torch.autograd.Function):
    """Fires above 0.2; backward takes the slope of a fast sigmoid as a surrogate."""

    @staticmethod
    def forward(ctx, x, step):
        ctx.save_for_backward(x)
        return (x > 0.2).to(x.dtype)

    @staticmethod
    def backward(ctx, grad):
        return grad * fast_sigmoid(*ctx.saved_tensors), None


def fast_sigmoid(x):
    return 1 / (10 * (x - 0.2).abs() + 1) ** 2


def spike(slope, words=Spike.__doc__):
    def backward(ctx, grad):
        return grad * slope(*ctx.saved_tensors), None

    return type("Fires", (Spike,), {"backward": staticmethod(backward), "__doc__": words})


def test_a_bump_over_a_step_is_information_where_a_surrogate_is_told_of():
    assert loudness(Spike) == {"x": "info"}
    assert loudness(spike(lambda x: (1 - (x - 0.2).abs()).clamp(min=0))) == {"x": "info"}
    assert loudness(spike(fast_sigmoid, "Fires above 0.2.")) == {"x": "info"}


def test_other_shapes_over_a_step_stay_warnings():
    for slope in (
        lambda x: -fast_sigmoid(x),
        lambda x: ((x - 0.2).abs() > 0.5).to(x.dtype),
        lambda x: fast_sigmoid(x - 2),
        lambda x: 1 - (x - 0.2).abs(),
    ):
        assert loudness(spike(slope)) == {"x": "warning"}


def test_a_gradient_passed_on_is_a_warning_where_forward_rounds_in_units_of_the_input():
    severities = [
        {item.input: item.severity for item in outcome(op).findings}["x"]
        for op in (Ternary, Smooth)
    ]
    assert severities == ["warning", "error"]
