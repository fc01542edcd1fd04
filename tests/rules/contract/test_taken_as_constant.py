"""GL103 where inputs are inferred: tensors without a gradient are taken for constants, aloud."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor
from torch.autograd import Function

import gradlint
from gradlint.inputs._infer import infer
from gradlint.targets.build import from_object


class Product(Function):
    """Backward forgets ``y``, or means it to be a constant: who knows."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, y: Tensor) -> Tensor:
        ctx.save_for_backward(x, y)
        return x * y

    @staticmethod
    def backward(ctx: Any, grad_output: Tensor) -> Any:
        _, y = ctx.saved_tensors
        return grad_output * y, None


class Masked(Function):
    """By its name a constant."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, mask: Tensor) -> Tensor:
        ctx.save_for_backward(mask)
        return x * mask

    @staticmethod
    def backward(ctx: Any, grad_output: Tensor) -> Any:
        (mask,) = ctx.saved_tensors
        return grad_output * mask, None


class Gate(Function):
    """Nothing depends smoothly on ``y``."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, y: Tensor) -> Tensor:
        ctx.save_for_backward(y)
        return x * (y > 0)

    @staticmethod
    def backward(ctx: Any, grad_output: Tensor) -> Any:
        (y,) = ctx.saved_tensors
        return grad_output * (y > 0), None


class Refuses(Function):
    """Says that there is no gradient for ``y``."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, y: Tensor) -> Tensor:
        ctx.save_for_backward(y)
        return x * y

    @staticmethod
    def backward(ctx: Any, grad_output: Tensor) -> Any:
        if ctx.needs_input_grad[1]:
            raise NotImplementedError("y is a constant")
        (y,) = ctx.saved_tensors
        return grad_output * y, None


class OnDemand(Function):
    """Computes the gradient for ``y`` where it is needed."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, y: Tensor) -> Tensor:
        ctx.save_for_backward(x, y)
        return x * y

    @staticmethod
    def backward(ctx: Any, grad_output: Tensor) -> Any:
        x, y = ctx.saved_tensors
        if not ctx.needs_input_grad[1]:
            return grad_output * y, None
        return grad_output * y, grad_output * x


def notes(op: Any, inputs: Any = None) -> list[tuple[str, str, str | None]]:
    report = gradlint.check(op, inputs, select=["GL103"], seed=0)
    assert report.ok, report
    return [
        (found.code, found.severity, found.input)
        for target in report.targets
        for found in target.findings
    ]


def test_a_tensor_taken_for_a_constant_is_told() -> None:
    assert notes(Product) == [("GL103", "info", "y")]


@pytest.mark.parametrize("op", [Masked, Gate, Refuses, OnDemand])
def test_constants_and_gradients_on_demand_are_not(op: Any) -> None:
    assert notes(op) == []


def test_nothing_is_told_of_inputs_that_were_given() -> None:
    x = torch.tensor([1.0, -2.0], dtype=torch.float64, requires_grad=True)
    y = torch.tensor([0.5, 3.0], dtype=torch.float64)
    assert notes(Product, (x, y)) == []


# What the source says of a gradient that is missing.


class Computed(Function):
    """Backward computes a gradient and leaves it where it is."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, y: Tensor) -> Tensor:
        ctx.save_for_backward(x, y)
        return x * y

    @staticmethod
    def backward(ctx: Any, grad_output: Tensor) -> Any:
        x, y = ctx.saved_tensors
        gy = torch.zeros_like(y)
        gy += grad_output * x
        return grad_output * y, None


class Filled(Computed):
    """Backward fills a gradient row by row, and leaves it where it is."""

    @staticmethod
    def backward(ctx: Any, grad_output: Tensor) -> Any:
        x, y = ctx.saved_tensors
        gy = torch.empty_like(y)
        for row in range(len(y)):
            gy[row] = grad_output[row] * x[row]
        return grad_output * y, None


class Collected(Computed):
    """Backward collects what it would still have to multiply."""

    @staticmethod
    def backward(ctx: Any, grad_output: Tensor) -> Any:
        x, y = ctx.saved_tensors
        gy = []
        for row in x:
            gy.append(row)
        return grad_output * y, None


class Shapes(Computed):
    """A size that is called as a gradient would be."""

    @staticmethod
    def backward(ctx: Any, grad_output: Tensor) -> Any:
        dx, dy = ctx.saved_tensors[0].shape  # noqa: RUF059
        return grad_output * ctx.saved_tensors[1], None


class Sizes(Function):
    """What is left unused is only a size of the gradient."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, y: Tensor) -> Tensor:
        ctx.save_for_backward(y)
        return x * y

    @staticmethod
    def backward(ctx: Any, grad_output: Tensor) -> Any:
        (y,) = ctx.saved_tensors
        rows, columns = grad_output.shape  # noqa: RUF059
        _, unused = grad_output.max(), 1  # noqa: F841
        return grad_output.reshape(rows, -1) * y, None


class Documented(Function):
    """The product of x and y. Differentiable in x and y."""

    forward, backward = Sizes.forward, Sizes.backward


class DocumentedConstant(Function):
    """The product of x and y. Differentiable in x, y is a constant."""

    forward, backward = Sizes.forward, Sizes.backward


class DocumentedOther(Function):
    """The product, differentiable with respect to x."""

    forward, backward = Computed.forward, Computed.backward


class Learned(Function):
    """Scales the rows by a learnable y."""

    forward, backward = Sizes.forward, Sizes.backward


class Divergence(Function):
    """Three of four arguments get a gradient."""

    @staticmethod
    def forward(ctx: Any, mu_q: Tensor, log_q: Tensor, mu_p: Tensor, log_p: Tensor) -> Tensor:
        ctx.save_for_backward(mu_q, log_q, mu_p, log_p)
        return (mu_q - mu_p) ** 2 * log_q * log_p

    @staticmethod
    def backward(ctx: Any, g: Tensor) -> Any:
        mu_q, log_q, mu_p, log_p = ctx.saved_tensors
        d = mu_q - mu_p
        return 2 * g * d * log_q * log_p, g * d**2 * log_p, None, g * d**2 * log_q


class OldAndNew(Function):
    """One argument alone is like the one without gradient."""

    @staticmethod
    def forward(ctx: Any, log_new: Tensor, log_old: Tensor) -> Tensor:
        out = (log_new - log_old).exp()
        ctx.save_for_backward(out)
        return out

    @staticmethod
    def backward(ctx: Any, g: Tensor) -> Any:
        return g * ctx.saved_tensors[0], None


class Biased(Function):
    """Adds to rows."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, bias: Tensor) -> Tensor:
        return x * 2 + bias

    @staticmethod
    def backward(ctx: Any, g: Tensor) -> Any:
        return 2 * g, None


class BiasedLoss(Function):
    """What a loss is shifted by is a constant by habit."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, bias: Tensor, label_smoothing: float = 0.1) -> Tensor:
        return x * 2 + bias

    @staticmethod
    def backward(ctx: Any, g: Tensor) -> Any:
        return 2 * g, None, None


class Layer(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.gain = torch.nn.Parameter(torch.ones(4))
        self.register_buffer("offset", torch.ones(4))

    def forward(self, x: Tensor) -> Tensor:
        return Gained.apply(x, self.gain, self.offset)


class Gained(Function):
    """Rows times y, plus z."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, y: Tensor, z: Tensor) -> Tensor:
        ctx.save_for_backward(y)
        return x * y + z.sum()

    @staticmethod
    def backward(ctx: Any, g: Tensor) -> Any:
        return g * ctx.saved_tensors[0], None, None


class Optimised(Function):
    """Rows times y, plus z.

    Args:
        x: (N,) rows
        y: (N,) factors
        z: (M,), offsets, optimised jointly with the factors
    """

    @staticmethod
    def forward(ctx: Any, x: Tensor, y: Tensor, z: Tensor) -> Tensor:
        ctx.save_for_backward(x, y)
        return x * y + z.sum()

    @staticmethod
    def backward(ctx: Any, g: Tensor) -> Any:
        x, y = ctx.saved_tensors
        return g * y, g * x, None


class NotOptimised(Optimised):
    """Rows times y, plus z.

    Args:
        z: (M,), offsets, not optimised
    """


def told(op: Any) -> list[tuple[str, str | None, str]]:
    """Severity, input and reason of each finding."""
    report = gradlint.check(op, select=["GL103"], seed=0)
    return [
        (found.severity, found.input, found.evidence.get("meant to have one", ""))
        for target in report.targets
        for found in target.findings
    ]


@pytest.mark.parametrize(
    ("op", "name", "reason"),
    [
        (Computed, "y", "backward computes `gy` and never uses it"),
        (Filled, "y", "backward computes `gy` and never uses it"),
        (Collected, "y", "backward computes `gy` and never uses it"),
        (Documented, "y", "the documentation says that `y` has one"),
        (Optimised, "z", "the documentation says that `z` has one"),
        (Learned, "y", "the documentation says that `y` has one"),
        (Divergence, "mu_p", "`mu_q` and `log_p` have gradients"),
        (Biased, "bias", "`bias` is by its name an input or a parameter"),
    ],
)
def test_a_gradient_that_was_meant_is_a_warning(op: Any, name: str, reason: str) -> None:
    assert told(op) == [("warning", name, reason)]


def test_a_parameter_that_a_module_passes_was_meant_to_be_trained() -> None:
    found = told(Gained)
    assert ("warning", "y", "`Layer` passes its parameter `gain` for `y`") in found
    assert ("info", "z", "") in found


@pytest.mark.parametrize(
    "op",
    [Sizes, Shapes, DocumentedConstant, DocumentedOther, OldAndNew, BiasedLoss, NotOptimised],
)
def test_without_evidence_it_is_information(op: Any) -> None:
    assert [severity for severity, _, _ in told(op)] == ["info"]


def test_a_parameter_without_gradient_inside_a_module_is_an_error() -> None:
    report = gradlint.check(Layer(), select=["GL103", "GL401"], seed=0)
    found = [(f.code, f.severity, f.input) for t in report.targets for f in t.findings]
    assert found[0] == ("GL103", "error", "gain")
    assert [f.follows for t in report.targets for f in t.findings if f.code == "GL401"] == ["GL103"]


class Between(Function):
    """The bounds of a search have no gradient."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, low: Tensor, high: Tensor) -> Tensor:
        ctx.save_for_backward(low, high)
        return x * (low + high) / 2

    @staticmethod
    def backward(ctx: Any, g: Tensor) -> Any:
        low, high = ctx.saved_tensors
        return g * (low + high) / 2, None, None


class Noisy(Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, noise: Tensor) -> Tensor:
        ctx.save_for_backward(noise)
        return x * noise

    @staticmethod
    def backward(ctx: Any, g: Tensor) -> Any:
        return g * ctx.saved_tensors[0], None


def between(x: Tensor, low: Tensor, high: Tensor) -> Tensor:
    return Between.apply(x, low, high)


def swapped(high: Tensor, x: Tensor, low: Tensor) -> Tensor:
    """The first argument of the Function has a gradient, although it is the second one here."""
    return Between.apply(x, low, high)


class BetweenModule(torch.nn.Module):
    def forward(self, x: Tensor, low: Tensor, high: Tensor) -> Tensor:
        return Between.apply(x, low, high)


def noisy(x: Tensor, noise: Tensor) -> Tensor:
    return Noisy.apply(x, noise)


def product(x: Tensor, y: Tensor) -> Tensor:
    return Product.apply(x, y)


def learned(x: Tensor, y: Tensor) -> Tensor:
    return Learned.apply(x, y)


class Nothing(Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, y: Tensor) -> Tensor:
        return x * y

    @staticmethod
    def backward(ctx: Any, g: Tensor) -> Any:
        return None, None


def both(x: Tensor, y: Tensor) -> Tensor:
    """Nothing has a gradient: no constant beside an input, but a backward that returns nothing."""
    return Nothing.apply(x, y)


@pytest.mark.parametrize("op", [between, swapped, BetweenModule()])
def test_several_tensors_without_gradient_are_constants_from_outside_too(op: Any) -> None:
    report = gradlint.check(op, select=["GL103", "GL401"], seed=0)
    (target,) = report.targets
    found = sorted((f.code, f.severity, f.input, f.grounds.explained) for f in target.findings)
    assert found == [
        ("GL103", "info", "high", None),
        ("GL103", "info", "low", None),
        ("GL401", "info", "high", "no-gradient"),
        ("GL401", "info", "low", "no-gradient"),
    ]
    assert target.verdict == "pass"
    judged = [check.resolution for check in target.checks if check.code == "GL401"]
    # That two have no gradient says nothing of how well that of x is known.
    assert judged
    assert all(resolution is not None and resolution < 1e-6 for resolution in judged)


def smoothed(x: Tensor, labels: Tensor) -> Tensor:
    """What the Function gets is computed from ``labels`` alone."""
    return Product.apply(x, (0.9 * labels + 0.05).log1p())


def mixed(x: Tensor, y: Tensor) -> Tensor:
    """The other factor is held constant: only ``y`` is behind what the Function gets."""
    return Product.apply(x, x.detach() * y)


def mixed_of_two(x: Tensor, y: Tensor) -> Tensor:
    """Near it: ``y`` has a gradient by another way."""
    return Product.apply(x, 0.9 * y) + y.sin()


def test_what_is_computed_from_an_input_alone_is_that_input() -> None:
    assert [name for _, name, _ in told(mixed)] == ["y"]
    report = gradlint.check(smoothed, select=["GL103", "GL401"], seed=0)
    found = {(f.code, f.severity) for target in report.targets for f in target.findings}
    assert ("GL103", "warning") in found
    assert told(mixed_of_two) == []


def test_a_constant_by_name_is_one_from_outside_too() -> None:
    report = gradlint.check(noisy, select=["GL103", "GL401"], seed=0)
    found = [(f.code, f.severity, f.input) for t in report.targets for f in t.findings]
    assert found == [("GL401", "info", "noise")]


class Rescaled(Function):
    """Where nobody gives the scale, it is a constant."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, scale: Any = torch.tensor(1)) -> Tensor:  # noqa: B008
        ctx.save_for_backward(scale)
        return x * scale

    @staticmethod
    def backward(ctx: Any, g: Tensor) -> Any:
        return g * ctx.saved_tensors[0], None


class Optional(Rescaled):
    """None says nothing of what is given."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, scale: Any = None) -> Tensor:
        ctx.save_for_backward(scale)
        return x * scale


class Trained(Rescaled):
    """Scales by a learnable scale."""


def rescaled(x: Tensor, scale: Tensor) -> Tensor:
    return Rescaled.apply(x, scale)


def optional(x: Tensor, scale: Tensor) -> Tensor:
    return Optional.apply(x, scale)


def trained(x: Tensor, scale: Tensor) -> Tensor:
    return Trained.apply(x, scale)


@pytest.mark.parametrize(
    ("op", "severity"), [(rescaled, "info"), (optional, "warning"), (trained, "warning")]
)
def test_what_is_a_number_by_default_is_a_constant_from_outside_too(op: Any, severity: str) -> None:
    report = gradlint.check(op, select=["GL103", "GL401"], seed=0)
    found = {(f.severity, f.input) for target in report.targets for f in target.findings}
    assert found == {(severity, "scale")}


class WeightedLoss(Function):
    @staticmethod
    def forward(ctx: Any, pred: Tensor, target: Tensor, w: Tensor) -> Tensor:
        ctx.save_for_backward(pred, target, w)
        return (w * (pred - target) ** 2).sum()

    @staticmethod
    def backward(ctx: Any, g: Tensor) -> Any:
        pred, target, w = ctx.saved_tensors
        return 2 * g * w * (pred - target), None, None


def weighted_loss(pred: Tensor, target: Tensor, w: Tensor) -> Tensor:
    return WeightedLoss.apply(pred, target, w)


def test_a_weight_beside_a_target_is_a_constant_from_outside_too() -> None:
    report = gradlint.check(weighted_loss, select=["GL103", "GL401"], seed=0)
    found = {f.severity for target in report.targets for f in target.findings}
    assert found == {"info"}


def test_the_only_tensor_without_gradient_is_a_warning_from_outside() -> None:
    assert told(product) == [("warning", "y", "")]
    report = gradlint.check(product, select=["GL103", "GL401"], seed=0)
    found = {(f.code, f.severity) for target in report.targets for f in target.findings}
    assert found == {("GL103", "warning"), ("GL401", "warning")}


def test_a_gradient_that_was_meant_is_a_warning_from_outside_too() -> None:
    assert told(learned) == [("warning", "y", "the documentation says that `y` has one")]


def test_a_function_that_gives_no_gradient_at_all_is_an_error_from_outside() -> None:
    assert {severity for severity, _, _ in told(both)} == {"error"}


def test_inputs_that_were_given_are_meant_from_outside_too() -> None:
    x, y = torch.randn(3, requires_grad=True), torch.randn(3, requires_grad=True)
    report = gradlint.check(product, inputs=(x, y), select=["GL103"], seed=0)
    assert [f.severity for t in report.targets for f in t.findings] == ["error"]


@torch.library.custom_op("taken_as_constant::weighted", mutates_args=())
def weighted(x: Tensor, window: Tensor) -> Tensor:
    return x * window


def _keep(ctx: Any, inputs: Any, output: Any) -> None:
    ctx.save_for_backward(inputs[1])


weighted.register_autograd(
    lambda ctx, grad: (grad * ctx.saved_tensors[0], None), setup_context=_keep
)


def windowed(x: Tensor, window: Tensor) -> Tensor:
    """x (N,) in a window. The window (N,) is a constant."""
    return weighted(x, window)


def unwindowed(x: Tensor, window: Tensor) -> Tensor:
    """x (N,) in a window (N,)."""
    return weighted(x, window)


@pytest.mark.parametrize(("op", "severity"), [(windowed, "info"), (unwindowed, "warning")])
def test_a_constant_of_a_custom_operator_has_the_name_that_it_is_documented_by(
    op: Any, severity: str
) -> None:
    found = gradlint.check(op, seed=0, order=1, select=["GL103"]).findings
    assert [(item.severity, item.input) for item in found] == [(severity, "window")]
    assert found[0].message.startswith("no gradient for `window`: ")


class Chosen(Function):
    """Softmax with noise, a constant."""

    @staticmethod
    def forward(ctx: Any, logits: Tensor, noise: Tensor) -> Tensor:
        ctx.save_for_backward(logits, noise)
        return (logits + noise).softmax(-1)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> Any:
        logits, noise = ctx.saved_tensors
        p = (logits + noise).softmax(-1)
        return p * (grad - (grad * p).sum(-1, keepdim=True)), None


def chosen(logits: Tensor, noise: Tensor) -> Tensor:
    return Chosen.apply(logits, noise.detach())


def chosen_and_added(logits: Tensor, noise: Tensor) -> Tensor:
    """Near it: another use of the noise has a gradient."""
    return Chosen.apply(logits, noise.detach()) + noise


def all_detached(logits: Tensor, noise: Tensor) -> Tensor:
    """Near it: what an op is of is no constant to it."""
    return Chosen.apply(logits.detach(), noise) * 2 + noise


@pytest.mark.parametrize(
    ("op", "constants"), [(chosen, {"noise"}), (chosen_and_added, set()), (all_detached, set())]
)
def test_what_a_caller_detaches_is_a_constant(op: Any, constants: set[str]) -> None:
    args = infer(from_object(op), 0)[0].args
    named = zip(("logits", "noise"), args, strict=True)
    assert {name for name, tensor in named if not tensor.requires_grad} == constants


def test_a_caller_that_detaches_a_constant_passes() -> None:
    assert gradlint.check(chosen, seed=0, order=1, select=["GL0", "GL4"]).findings == []


class Relaxed(Function):
    """A gate that is open by chance."""

    @staticmethod
    def forward(ctx: Any, logits: Tensor, u: Tensor) -> Tensor:
        s = torch.sigmoid(logits + torch.log(u) - torch.log1p(-u))
        ctx.save_for_backward(s)
        return s

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> Any:
        (s,) = ctx.saved_tensors
        return grad * s * (1 - s), None


class Scaled(Function):
    """Its second argument is no noise."""

    @staticmethod
    def forward(ctx: Any, logits: Tensor, u: Tensor) -> Tensor:
        s = torch.sigmoid(logits + torch.log1p(u))
        ctx.save_for_backward(s)
        return s

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> Any:
        (s,) = ctx.saved_tensors
        return grad * s * (1 - s), None


class Gated(torch.nn.Module):
    def __init__(self, function: Any) -> None:
        super().__init__()
        self.function = function
        self.logits = torch.nn.Parameter(torch.linspace(-1, 1, 4, dtype=torch.float64))

    def forward(self, u: Tensor) -> Tensor:
        return self.function.apply(self.logits.expand_as(u), u)


def uniform(*shape: int) -> Tensor:
    generator = torch.Generator().manual_seed(3)
    return 0.1 + 0.8 * torch.rand(shape, generator=generator, dtype=torch.float64)


@pytest.mark.parametrize(
    ("function", "marked", "severity"),
    [
        (Relaxed, False, "info"),
        (Relaxed, True, "error"),  # who marks it asks for its gradient
        (Scaled, False, "warning"),
    ],
)
def test_what_noise_is_made_of_is_a_constant(function: Any, marked: bool, severity: str) -> None:
    given = uniform(3, 4).requires_grad_(marked)
    report = gradlint.check(Gated(function), [(given,)], seed=0, order=1, select=["GL103"])
    assert [finding.severity for finding in report.findings] == [severity]
