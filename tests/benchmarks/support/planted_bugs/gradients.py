"""Bugs of the first look: number, shape and dtype of gradients, and their values."""

from __future__ import annotations

from typing import Any

import torch
from torch.autograd import Function
from torch.autograd.function import once_differentiable

from tests.benchmarks.support.planted_bugs import Bug


def draw(*shape: int, seed: int = 0) -> torch.Tensor:
    """A float64 tensor that requires grad."""
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(*shape, generator=generator, dtype=torch.float64).requires_grad_()


def one() -> tuple[Any, ...]:
    """One matrix."""
    return (draw(4, 5),)


def two() -> tuple[Any, ...]:
    """Two matrices of one shape."""
    return draw(4, 5), draw(4, 5, seed=1)


def linear() -> tuple[Any, ...]:
    """x, weight and bias of a linear layer."""
    return draw(6, 4), draw(3, 4, seed=1), draw(3, seed=2)


class ScaleFixed(Function):
    """x·scale, scale a number."""

    @staticmethod
    def forward(ctx, x, scale):
        ctx.scale = scale
        return x * scale

    @staticmethod
    def backward(ctx, grad):
        return grad * ctx.scale, None


class ScaleFaulty(ScaleFixed):
    """One gradient too few: the argument added later got none."""

    @staticmethod
    def backward(ctx, grad):
        return grad * ctx.scale


class ScaleGivesNumberGradient(ScaleFixed):
    """A gradient for the number."""

    @staticmethod
    def backward(ctx, grad):
        return grad * ctx.scale, grad.sum()


class LinearFixed(Function):
    """x @ weight.T + bias."""

    @staticmethod
    def forward(ctx, x, weight, bias):
        ctx.save_for_backward(x, weight)
        return x @ weight.T + bias

    @staticmethod
    def backward(ctx, grad):
        x, weight = ctx.saved_tensors
        return grad @ weight, grad.T @ x, grad.sum(0)


class LinearForgetsBias(LinearFixed):
    """None for the bias."""

    @staticmethod
    def backward(ctx, grad):
        x, weight = ctx.saved_tensors
        return grad @ weight, grad.T @ x, None


class LinearBiasOverWrongAxis(LinearFixed):
    """The bias gradient is kept as a row a sample."""

    @staticmethod
    def backward(ctx, grad):
        x, weight = ctx.saved_tensors
        return grad @ weight, grad.T @ x, grad.sum(1)


class LinearBiasUnsummed(LinearFixed):
    """Left to the engine, which sums a broadcast gradient."""

    @staticmethod
    def backward(ctx, grad):
        x, weight = ctx.saved_tensors
        return grad @ weight, grad.T @ x, grad


class LinearSwapped(LinearFixed):
    """grad·x for the weight, transposed into shape by reshape instead of .T."""

    @staticmethod
    def backward(ctx, grad):
        x, weight = ctx.saved_tensors
        return grad @ weight, (x.T @ grad).reshape(weight.shape), grad.sum(0)


class LinearNumpyGradient(LinearFixed):
    """Returns an array."""

    @staticmethod
    def backward(ctx, grad):
        x, weight = ctx.saved_tensors
        return (grad @ weight).detach().numpy(), grad.T @ x, grad.sum(0)


class SinFixed(Function):
    """sin x."""

    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x.sin()

    @staticmethod
    def backward(ctx, grad):
        (x,) = ctx.saved_tensors
        return grad * x.cos()


class SinHalfGradient(SinFixed):
    """The gradient leaves in half precision."""

    @staticmethod
    def backward(ctx, grad):
        (x,) = ctx.saved_tensors
        return (grad * x.cos()).half()


class SinDetached(SinFixed):
    """Second derivatives vanish."""

    @staticmethod
    def backward(ctx, grad):
        (x,) = ctx.saved_tensors
        return grad * x.detach().cos()


class SinFirstOrderOnly(SinFixed):
    """The same, said openly."""

    @staticmethod
    @once_differentiable
    def backward(ctx, grad):
        (x,) = ctx.saved_tensors
        return grad * x.cos()


class SinOfSavedCosine(Function):
    """Saves cos x, of which autograd knows nothing: x has no second derivative."""

    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x.cos())
        return x.sin()

    @staticmethod
    def backward(ctx, grad):
        (cosine,) = ctx.saved_tensors
        return grad * cosine


class CubeGradient(Function):
    """3x²·grad as a Function of its own; ``factor`` is that of its own backward."""

    factor = 6.0

    @staticmethod
    def forward(ctx, x, grad):
        ctx.save_for_backward(x, grad)
        return 3 * x**2 * grad

    @staticmethod
    def backward(ctx, outer):
        x, grad = ctx.saved_tensors
        return outer * 6 * x * grad, outer * 3 * x**2


class CubeGradientHalved(CubeGradient):
    """Its derivative in x is half of what it should be."""

    @staticmethod
    def backward(ctx, outer):
        x, grad = ctx.saved_tensors
        return outer * 3 * x * grad, outer * 3 * x**2


class CubeFixed(Function):
    """x³ with a written double backward."""

    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x**3

    @staticmethod
    def backward(ctx, grad):
        (x,) = ctx.saved_tensors
        return CubeGradient.apply(x, grad)


class CubeFaulty(CubeFixed):
    """The written double backward is wrong."""

    @staticmethod
    def backward(ctx, grad):
        (x,) = ctx.saved_tensors
        return CubeGradientHalved.apply(x, grad)


class SoftmaxFixed(Function):
    """Softmax over the last axis."""

    @staticmethod
    def forward(ctx, x):
        y = x.softmax(-1)
        ctx.save_for_backward(y)
        return y

    @staticmethod
    def backward(ctx, grad):
        (y,) = ctx.saved_tensors
        return y * (grad - (grad * y).sum(-1, keepdim=True))


class SoftmaxForgetsSum(SoftmaxFixed):
    """Treats the outputs as independent."""

    @staticmethod
    def backward(ctx, grad):
        (y,) = ctx.saved_tensors
        return grad * y * (1 - y)


class ProductIgnoresIncoming(Function):
    """x·y, whose backward forgets grad_output (right under ``loss.sum()`` alone)."""

    @staticmethod
    def forward(ctx, x, y):
        ctx.save_for_backward(x, y)
        return x * y

    @staticmethod
    def backward(ctx, grad):
        x, y = ctx.saved_tensors
        return y.clone(), x.clone()


class ProductFixed(ProductIgnoresIncoming):
    """x·y."""

    @staticmethod
    def backward(ctx, grad):
        x, y = ctx.saved_tensors
        return grad * y, grad * x


class ProductIndicesSwapped(ProductIgnoresIncoming):
    """The two gradients stand in each other's place."""

    @staticmethod
    def backward(ctx, grad):
        x, y = ctx.saved_tensors
        return grad * x, grad * y


class NormalisedFixed(Function):
    """Rows without their mean."""

    @staticmethod
    def forward(ctx, x):
        return x - x.mean(-1, keepdim=True)

    @staticmethod
    def backward(ctx, grad):
        return grad - grad.mean(-1, keepdim=True)


class NormalisedPassesOn(NormalisedFixed):
    """The mean is taken for a constant."""

    @staticmethod
    def backward(ctx, grad):
        return grad.clone()


class WithLogSumFixed(Function):
    """Softmax and its normaliser, both differentiable."""

    @staticmethod
    def forward(ctx, x):
        y = x.softmax(-1)
        ctx.save_for_backward(y)
        return y, x.logsumexp(-1)

    @staticmethod
    def backward(ctx, grad, grad_lse):
        (y,) = ctx.saved_tensors
        return y * (grad - (grad * y).sum(-1, keepdim=True) + grad_lse.unsqueeze(-1))


class WithLogSumDropped(WithLogSumFixed):
    """The gradient of the auxiliary output is dropped."""

    @staticmethod
    def backward(ctx, grad, grad_lse):
        (y,) = ctx.saved_tensors
        return y * (grad - (grad * y).sum(-1, keepdim=True))


class ClampedGradient(SinFixed):
    """Large incoming gradients are clipped: backward is not linear."""

    @staticmethod
    def backward(ctx, grad):
        (x,) = ctx.saved_tensors
        return (grad * x.cos()).clamp(-1.2, 1.2)


class ForwardModeFixed(Function):
    """x², with a jvp."""

    @staticmethod
    def forward(x):
        return x * x

    @staticmethod
    def setup_context(ctx, inputs, output):
        ctx.save_for_backward(*inputs)
        ctx.save_for_forward(*inputs)

    @staticmethod
    def backward(ctx, grad):
        (x,) = ctx.saved_tensors
        return 2 * x * grad

    @staticmethod
    def jvp(ctx, tangent):
        (x,) = ctx.saved_tensors
        return 2 * x * tangent


class ForwardModeFaulty(ForwardModeFixed):
    """The jvp lacks its factor."""

    @staticmethod
    def jvp(ctx, tangent):
        (x,) = ctx.saved_tensors
        return x * tangent


class UndefinedFixed(WithLogSumFixed):
    """Undefined gradients stay None, and are told apart."""

    @staticmethod
    def forward(ctx, x):
        ctx.set_materialize_grads(False)
        return WithLogSumFixed.forward(ctx, x)

    @staticmethod
    def backward(ctx, grad, grad_lse):
        (y,) = ctx.saved_tensors
        found = torch.zeros_like(y)
        if grad is not None:
            found = found + y * (grad - (grad * y).sum(-1, keepdim=True))
        if grad_lse is not None:
            found = found + y * grad_lse.unsqueeze(-1)
        return found


class UndefinedFaulty(UndefinedFixed):
    """Fails as soon as one output is not used."""

    @staticmethod
    def backward(ctx, grad, grad_lse):
        (y,) = ctx.saved_tensors
        return y * (grad - (grad * y).sum(-1, keepdim=True) + grad_lse.unsqueeze(-1))


class ExponentialFixed(Function):
    """eˣ, which saves its output."""

    @staticmethod
    def forward(ctx, x):
        y = x.exp()
        ctx.save_for_backward(y)
        return y

    @staticmethod
    def backward(ctx, grad):
        (y,) = ctx.saved_tensors
        return grad * y


class ExponentialSavesHalf(ExponentialFixed):
    """Saves it in half precision, for memory, unless it runs in float64."""

    @staticmethod
    def forward(ctx, x):
        y = x.exp()
        ctx.save_for_backward(y if x.dtype == torch.float64 else y.half().to(x.dtype))
        return y


BUGS = [
    Bug(
        "one gradient too few",
        "GL101",
        ScaleFaulty,
        ScaleFixed,
        lambda: (draw(4, 5), 1.7),
        "huawei-noah/AdderNet#21",
    ),
    Bug(
        "a gradient for a number",
        "GL102",
        ScaleGivesNumberGradient,
        ScaleFixed,
        lambda: (draw(4, 5), 1.7),
        "class 7: arity",
    ),
    Bug("no gradient for the bias", "GL103", LinearForgetsBias, LinearFixed, linear, "class 8"),
    Bug("an array as gradient", "GL104", LinearNumpyGradient, LinearFixed, linear, "class 7"),
    Bug(
        "bias summed over samples", "GL201", LinearBiasOverWrongAxis, LinearFixed, linear, "class 2"
    ),
    Bug(
        "broadcast left to the engine", "GL202", LinearBiasUnsummed, LinearFixed, linear, "class 2"
    ),
    Bug("half-precision gradient", "GL203", SinHalfGradient, SinFixed, one, "NVIDIA/apex#1188"),
    Bug("reshape for transpose", "GL401", LinearSwapped, LinearFixed, linear, "class 2"),
    Bug("softmax without its sum", "GL401", SoftmaxForgetsSum, SoftmaxFixed, one, "class 2"),
    Bug("forgets grad_output", "GL401", ProductIgnoresIncoming, ProductFixed, two, "class 12"),
    Bug(
        "gradients in each other's place",
        "GL401",
        ProductIndicesSwapped,
        ProductFixed,
        two,
        "cornellius-gp/gpytorch#1322",
    ),
    Bug("mean taken for a constant", "GL401", NormalisedPassesOn, NormalisedFixed, one, "class 2"),
    Bug(
        "auxiliary output's gradient dropped",
        "GL401",
        WithLogSumDropped,
        WithLogSumFixed,
        one,
        "deepseek-ai/FlashMLA#203",
    ),
    Bug("gradient clipped inside", "GL401", ClampedGradient, SinFixed, one, "class 2"),
    Bug("jvp without its factor", "GL403", ForwardModeFaulty, ForwardModeFixed, one, "class 2"),
    Bug(
        "undefined gradient not expected", "GL405", UndefinedFaulty, UndefinedFixed, one, "class 21"
    ),
    Bug("double backward halved", "GL501", CubeFaulty, CubeFixed, one, "pytorch/pytorch#1753"),
    Bug("detached in backward", "GL502", SinDetached, SinFixed, one, "pytorch/pytorch#58509"),
    Bug(
        "saves an intermediate",
        "GL502",
        SinOfSavedCosine,
        SinFirstOrderOnly,
        one,
        "class 16: double backward",
    ),
    Bug(
        "saved in half precision",
        "GL801",
        ExponentialSavesHalf,
        ExponentialFixed,
        one,
        "linkedin/Liger-Kernel#950",
        also=("GL401",),
        dtypes=("float32",),
    ),
]
