"""GL401 on usual surrogates: information where a word tells of one, or inside of a module, and a
warning in a Function that says nothing. Near them: gradients that nobody would choose, and faults
beside a surrogate."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.autograd import Function

from gradlint.checking.severity import as_loud_as_evidence
from gradlint.model.rule import Outcome
from gradlint.rules.catalogue import by_code


class Ternary(Function):
    @staticmethod
    def forward(ctx: Any, w: Tensor) -> Tensor:
        mask = w.abs() > 0.7 * w.abs().mean()
        return (w.abs() * mask).sum() / mask.sum() * mask * w.sign()

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> Any:
        return grad


class TernaryHalved(Ternary):
    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> Any:
        return 0.5 * grad


class MaskForgotten(Function):
    """Compares, too, but every element that is kept is kept as it is."""

    @staticmethod
    def forward(ctx: Any, w: Tensor) -> Tensor:
        return w * (w.abs() > 0.7 * w.abs().mean())

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> Any:
        return grad


class RowMeans(Function):
    """Returns few numbers, too, but each is a mean."""

    @staticmethod
    def forward(ctx: Any, w: Tensor) -> Tensor:
        return torch.where(w.sum() > 1e9, w, w.mean(-1, keepdim=True).expand_as(w))

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> Any:
        return grad


class ScaledSigns(Function):
    """Signs times the mean of each row, with the gradient of the mean."""

    @staticmethod
    def forward(ctx: Any, w: Tensor) -> Tensor:
        ctx.save_for_backward(w)
        return w.sign() * w.abs().mean(-1, keepdim=True)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> Any:
        (w,) = ctx.saved_tensors
        mean = w.abs().mean(-1, keepdim=True)
        of_mean = (grad * w.sign()).mean(-1, keepdim=True) * w.sign()
        return grad * mean * (w.abs() <= 1.0) + of_mean


class MeanSummed(ScaledSigns):
    """The gradient of a sum instead of that of the mean."""

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> Any:
        (w,) = ctx.saved_tensors
        mean = w.abs().mean(-1, keepdim=True)
        of_sum = (grad * w.sign()).sum(-1, keepdim=True) * w.sign()
        return grad * mean * (w.abs() <= 1.0) + of_sum


class SignedProduct(Function):
    """A product with signs, which are chosen by a comparison; w is no larger than the output."""

    @staticmethod
    def forward(ctx: Any, w: Tensor) -> Tensor:
        x = torch.linspace(0.5, 2.0, 8, dtype=w.dtype).reshape(2, 4)
        ctx.save_for_backward(w)
        return x @ torch.where(w >= 0, 1.0, -1.0).to(w).mT

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> Any:
        (w,) = ctx.saved_tensors
        x = torch.linspace(0.5, 2.0, 8, dtype=w.dtype).reshape(2, 4)
        return (grad.mT @ x) * (w.abs() <= 1.0)


class SignedProductOutside(SignedProduct):
    """The mask is the wrong way round."""

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> Any:
        (w,) = ctx.saved_tensors
        x = torch.linspace(0.5, 2.0, 8, dtype=w.dtype).reshape(2, 4)
        return (grad.mT @ x) * (w.abs() > 1.0)


class OneHot(Function):
    """The largest as a one-hot vector, with the derivative of the softmax before it."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, tau: float) -> Tensor:
        p = (x / tau).softmax(-1)
        ctx.save_for_backward(p)
        ctx.tau = tau
        return torch.zeros_like(p).scatter(-1, p.argmax(-1, keepdim=True), 1.0)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> Any:
        (p,) = ctx.saved_tensors
        return p * (grad - (grad * p).sum(-1, keepdim=True)) / ctx.tau, None


class TauForgotten(OneHot):
    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> Any:
        (p,) = ctx.saved_tensors
        return p * (grad - (grad * p).sum(-1, keepdim=True)), None


class Clipped(Function):
    """Rounds between zero and a learnt bound, which is read as a number."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, bound: Tensor) -> Tensor:
        ctx.save_for_backward(x, bound)
        scale = 15.0 / bound
        return torch.round(torch.clamp(x, 0.0, bound.item()) * scale) / scale

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> Any:
        x, bound = ctx.saved_tensors
        inside = (x >= 0) & (x < bound)
        return grad * inside, (grad * (x >= bound)).sum().reshape(bound.shape)


class ClippedAbove(Clipped):
    """Nothing is stopped below zero."""

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> Any:
        x, bound = ctx.saved_tensors
        return grad * (x < bound), (grad * (x >= bound)).sum().reshape(bound.shape)


class BoundEverywhere(Clipped):
    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> Any:
        x, bound = ctx.saved_tensors
        return grad * ((x >= 0) & (x < bound)), grad.sum().reshape(bound.shape)


class Steps(Function):
    """Learnt step sizes, the gradient of which is scaled by a number that forward does not use."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, step: Tensor, scale: float) -> Tensor:
        ctx.save_for_backward(x, step)
        ctx.scale = scale
        return (x / step).round().clamp(-4, 3) * step

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> Any:
        x, step = ctx.saved_tensors
        q = x / step
        low, high = (q < -4).to(x), (q > 3).to(x)
        inside = 1 - low - high
        slope = low * -4 + high * 3 + inside * (q.round() - q)
        return grad * inside, (grad * slope).sum().reshape(step.shape) * ctx.scale, None


class StepsReversed(Steps):
    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> Any:
        x, step = ctx.saved_tensors
        q = x / step
        low, high = (q < -4).to(x), (q > 3).to(x)
        inside = 1 - low - high
        slope = low * -4 + high * 3 + inside * (q - q.round())
        return grad * inside, (grad * slope).sum().reshape(step.shape) * ctx.scale, None


class Fires(Function):
    """A step at a threshold with a gradient of its own."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, threshold: Tensor) -> Tensor:
        ctx.save_for_backward(x, threshold)
        return (x > threshold).to(x)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> Any:
        x, threshold = ctx.saved_tensors
        slope = grad * (1 - (x - threshold).abs()).clamp(min=0)
        return slope, -slope.sum().reshape(threshold.shape)


class FiresLower(Fires):
    """The sign of the threshold's gradient is forgotten."""

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> Any:
        slope, opposite = Fires.backward(ctx, grad)
        return slope, -opposite


class FiresEach(Function):
    """A step at a threshold for each column."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, threshold: Tensor, slope: float) -> Tensor:
        ctx.save_for_backward(x, threshold)
        ctx.slope = slope
        return (x >= threshold).to(x)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> Any:
        x, threshold = ctx.saved_tensors
        bump = grad / (1 + ctx.slope * (x - threshold).abs()) ** 2
        return bump, -bump.sum(0), None


class FiresElsewhere(FiresEach):
    """The bump is over zero, and not over the threshold."""

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> Any:
        bump = grad / (1 + ctx.slope * ctx.saved_tensors[0].abs()) ** 2
        return bump, -bump.sum(0), None


class Chosen(Function):
    """The largest of logits with noise, one-hot, with the derivative of their softmax."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, noise: Tensor, tau: float) -> Tensor:
        ctx.save_for_backward(x, noise)
        ctx.tau = tau
        best = (x + noise).argmax(-1, keepdim=True)
        return torch.zeros_like(x).scatter(-1, best, 1.0)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> Any:
        x, noise = ctx.saved_tensors
        p = ((x + noise) / ctx.tau).softmax(-1)
        found = p * (grad - (grad * p).sum(-1, keepdim=True)) / ctx.tau
        return found, found, None


class ChosenWithoutTau(Chosen):
    """Right at the sample, where the temperature is one."""

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> Any:
        found, _, _ = Chosen.backward(ctx, grad)
        return found * ctx.tau, found * ctx.tau, None


class PowersOfTwo(Function):
    """The nearest power of two by the logarithm, of either sign, within bounds."""

    @staticmethod
    def forward(ctx: Any, x: Tensor) -> Tensor:
        ctx.save_for_backward(x)
        return x.sign() * x.abs().clamp(2.0**-4, 1.0).log2().round().exp2()

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> Any:
        (x,) = ctx.saved_tensors
        return grad * ((x.abs() >= 2.0**-4) & (x.abs() <= 1.0))


class PowersOfTwoBelow(PowersOfTwo):
    """Nothing is stopped below the lower bound."""

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> Any:
        (x,) = ctx.saved_tensors
        return grad * (x.abs() <= 1.0)


class Wraps(Function):
    """Not flat: the slope is one, and zero is the gradient with rounding as the identity."""

    @staticmethod
    def forward(ctx: Any, x: Tensor) -> Tensor:
        return x - x.round()

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> Any:
        return torch.zeros_like(grad)


class NearestImage(Wraps):
    """The square of what is wrapped around, with the gradient of what is not."""

    @staticmethod
    def forward(ctx: Any, x: Tensor) -> Tensor:
        ctx.save_for_backward(x)
        return (x - x.round()).square()

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> Any:
        (x,) = ctx.saved_tensors
        return 2 * grad * x


class LargestHalf(Function):
    """What the larger half of the scores selects of x, and for the scores the gradient of the
    zeros and ones that they become."""

    @staticmethod
    def chosen(scores: Tensor) -> Tensor:
        mask = torch.zeros_like(scores).flatten()
        mask[scores.flatten().topk(scores.numel() // 2).indices] = 1.0
        return mask.view_as(scores)

    @staticmethod
    def forward(ctx: Any, scores: Tensor, x: Tensor) -> Tensor:
        mask = LargestHalf.chosen(scores)
        ctx.save_for_backward(x, mask)
        return 2.0 * (x * mask)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> Any:
        x, mask = ctx.saved_tensors
        return grad * x * 2.0, grad * mask * 2.0


class LargestHalfTwice(LargestHalf):
    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> Any:
        x, mask = ctx.saved_tensors
        return grad * x * 4.0, grad * mask * 2.0


class AboveMean(LargestHalf):
    """The same with truth values as factors."""

    @staticmethod
    def forward(ctx: Any, scores: Tensor, x: Tensor) -> Tensor:
        mask = scores > scores.mean()
        ctx.save_for_backward(x, mask)
        return 2.0 * (x * mask)


def numbers(*shape: int) -> Tensor:
    torch.manual_seed(7)
    return torch.randn(shape or (3, 4), dtype=torch.float64).requires_grad_()


def other_numbers() -> Tensor:
    return numbers().detach().flip(0, 1).requires_grad_()


def one(value: float) -> Tensor:
    return torch.tensor([value], dtype=torch.float64, requires_grad=True)


def row() -> Tensor:
    return torch.tensor([0.6, -0.4, 0.2, -0.9], dtype=torch.float64, requires_grad=True)


def told(op: type[Function]) -> type[Function]:
    return type(f"{op.__name__}STE", (op,), {})


@pytest.mark.parametrize(
    ("op", "others", "expected"),
    [
        (LargestHalf, (other_numbers(),), {"scores": "usual"}),
        (LargestHalfTwice, (other_numbers(),), {"scores": "warning"}),
        (AboveMean, (other_numbers(),), {"scores": "usual"}),
        (Ternary, (), {"w": "usual"}),
        (TernaryHalved, (), {"w": "error"}),
        (MaskForgotten, (), {"w": "error"}),
        (RowMeans, (), {"w": "error"}),
        (ScaledSigns, (), {"w": "usual"}),
        (MeanSummed, (), {"w": "error"}),
        (SignedProduct, (), {"w": "usual"}),
        (SignedProductOutside, (), {"w": "warning"}),
        (OneHot, (0.4,), {"x": "usual"}),
        (TauForgotten, (0.4,), {"x": "warning"}),
        (Clipped, (one(0.8),), {"x": "usual", "bound": "usual"}),
        (ClippedAbove, (one(0.8),), {"x": "warning", "bound": "warning"}),
        (BoundEverywhere, (one(0.8),), {"x": "warning", "bound": "warning"}),
        (Steps, (one(0.3), 0.25), {"x": "usual", "step": "usual"}),
        (StepsReversed, (one(0.3), 0.25), {"x": "warning", "step": "warning"}),
        (Fires, (one(0.1),), {"x": "usual", "threshold": "usual"}),
        (FiresLower, (one(0.1),), {"x": "warning", "threshold": "warning"}),
        (FiresEach, (row(), 4.0), {"x": "usual", "threshold": "usual"}),
        (FiresElsewhere, (row(), 4.0), {"x": "warning", "threshold": "warning"}),
        (Chosen, (numbers(3, 4), 1.0), {"x": "usual", "noise": "usual"}),
        (ChosenWithoutTau, (numbers(3, 4), 1.0), {"x": "warning", "noise": "warning"}),
        (PowersOfTwo, (), {"x": "usual"}),
        (PowersOfTwoBelow, (), {"x": "warning"}),
        (Wraps, (), {"x": "error"}),
        (NearestImage, (), {"x": "error"}),
    ],
)
def test_functions(
    probed: Callable[..., Outcome], op: type[Function], others: Any, expected: dict[str, str]
) -> None:
    def found(op: type[Function]) -> dict[str | None, str]:
        outcome = as_loud_as_evidence(probed(by_code("GL401"), op, numbers(), *others))
        return {item.input: item.severity for item in outcome.findings}

    def where(usual: str) -> dict[str, str]:
        return {name: usual if loud == "usual" else loud for name, loud in expected.items()}

    assert found(op) == where("warning")
    if "usual" in expected.values():
        assert found(told(op)) == where("info")


def test_words_do_not_explain_what_is_stopped_elsewhere(probed: Callable[..., Outcome]) -> None:
    outcome = as_loud_as_evidence(probed(by_code("GL401"), told(PowersOfTwoBelow), numbers()))
    assert [item.severity for item in outcome.findings] == ["warning"]


class Layer(nn.Module):
    """A linear layer whose weights or inputs a Function changes."""

    def __init__(
        self, of_weight: Any = None, of_input: Any = None, *others: Any, stopped: bool = False
    ) -> None:
        super().__init__()
        self.of_weight, self.of_input, self.stopped = of_weight, of_input, stopped
        self.numbers = others
        self.weight = nn.Parameter(numbers(5, 4).detach())
        if of_input is not None:
            self.level = nn.Parameter(one(0.8).detach())

    def forward(self, x: Tensor) -> Tensor:
        if self.of_input is not None:
            x = self.of_input.apply(x, self.level, *self.numbers)
        weight = self.weight if self.of_weight is None else self.of_weight.apply(self.weight)
        y = x @ weight.mT
        return y * y.detach() if self.stopped else y


@pytest.mark.parametrize(
    ("layer", "expected"),
    [
        (Layer(Ternary), {"weight": "info"}),
        (Layer(TernaryHalved), {"weight": "error"}),
        (Layer(MaskForgotten), {"weight": "error"}),
        (Layer(None, Clipped), {"x": "info", "level": "info"}),
        (Layer(None, BoundEverywhere), {"x": "warning", "level": "warning"}),
        (Layer(None, Steps, 0.25), {"x": "info", "level": "info"}),
        (Layer(None, StepsReversed, 0.25), {"x": "warning", "level": "warning"}),
        (Layer(None, Fires), {"x": "info", "level": "info"}),
    ],
)
def test_layers(probed: Callable[..., Outcome], layer: Layer, expected: dict[str, str]) -> None:
    outcome = as_loud_as_evidence(probed(by_code("GL401"), layer, numbers()))
    assert {item.input: item.severity for item in outcome.findings} == expected


def test_a_gradient_that_is_stopped_beside_a_surrogate(probed: Callable[..., Outcome]) -> None:
    layer = Layer(Ternary, stopped=True)
    outcome = as_loud_as_evidence(probed(by_code("GL401"), layer, numbers()))
    assert {item.input: item.severity for item in outcome.findings}["x"] == "error"


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize(("op", "severity"), [(told(Ternary), "info"), (TernaryHalved, "error")])
def test_in_low_precision(
    probed: Callable[..., Outcome], op: type[Function], severity: str, dtype: torch.dtype
) -> None:
    w = numbers().detach().to(dtype).requires_grad_()
    outcome = as_loud_as_evidence(probed(by_code("GL401"), op, w))
    assert {item.severity for item in outcome.findings} == {severity}
