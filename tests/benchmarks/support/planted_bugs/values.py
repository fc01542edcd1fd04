"""Bugs that show at special values, in low precision and under autocast: GL3, GL402, GL8, GL904."""

from __future__ import annotations

from typing import Any

import torch
from torch.amp import custom_bwd, custom_fwd
from torch.autograd import Function
from torch.nn import functional

from tests.benchmarks.support.planted_bugs import Bug
from tests.benchmarks.support.planted_bugs.gradients import draw, one


def positive() -> tuple[Any, ...]:
    """One matrix of positive elements."""
    return ((draw(4, 5).detach().abs() + 0.1).requires_grad_(),)


def product() -> tuple[Any, ...]:
    """x and weight of a matrix product."""
    return draw(6, 4), draw(4, 3, seed=1)


def with_bound() -> tuple[Any, ...]:
    """One matrix and a bound."""
    return draw(4, 5), 0.8


def with_mask() -> tuple[Any, ...]:
    """One matrix and a mask that leaves something in every row."""
    mask = torch.rand(4, 5, generator=torch.Generator().manual_seed(3)) > 0.4
    mask[:, 0] = True
    return draw(4, 5), mask


def table() -> tuple[Any, ...]:
    """Indices and the table that they point into."""
    return torch.tensor([0, 1, 1, 1, 0, 1]), draw(2, 4)


# -- GL301: a hole in forward ----------------------------------------------------------------------


class Entropy(Function):
    """−Σ p·log p."""

    @staticmethod
    def forward(ctx, p):
        ctx.save_for_backward(p)
        return -(p * p.log()).sum(-1)

    @staticmethod
    def backward(ctx, grad_output):
        (p,) = ctx.saved_tensors
        return -grad_output[..., None] * (p.log() + 1)


class EntropyWithLimit(Entropy):
    @staticmethod
    def forward(ctx, p):
        ctx.save_for_backward(p)
        return torch.special.entr(p).sum(-1)


class SineOverX(Function):
    """sin(x)/x."""

    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x.sin() / x

    @staticmethod
    def backward(ctx, grad_output):
        (x,) = ctx.saved_tensors
        safe = torch.where(x == 0, 1.0, x)
        slope = (safe * safe.cos() - safe.sin()) / safe**2
        return grad_output * torch.where(x == 0, 0.0, slope)


class SineOverXGuarded(SineOverX):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return torch.where(x == 0, 1.0, x.sin() / x)


class SignedSquare(Function):
    """x·|x|, by its sign."""

    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x**2 * (x / x.abs())

    @staticmethod
    def backward(ctx, grad_output):
        (x,) = ctx.saved_tensors
        return grad_output * 2 * x.abs()


class SignedSquareByAbs(SignedSquare):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * x.abs()


def softened_relu(x: torch.Tensor) -> torch.Tensor:
    """(e^x − 1)/x."""
    return x.expm1() / x


def softened_relu_guarded(x: torch.Tensor) -> torch.Tensor:
    safe = torch.where(x == 0, 1.0, x)
    return torch.where(x == 0, 1.0 + x / 2, safe.expm1() / safe)


# -- GL302: NaN in backward at special values ------------------------------------------------------


class Product(Function):
    """Product of each row."""

    @staticmethod
    def forward(ctx, x):
        y = x.prod(-1, keepdim=True)
        ctx.save_for_backward(x, y)
        return y

    @staticmethod
    def backward(ctx, grad_output):
        x, y = ctx.saved_tensors
        return grad_output * y / x


class ProductOfOthers(Product):
    @staticmethod
    def backward(ctx, grad_output):
        x, _ = ctx.saved_tensors
        others = [torch.cat([x[..., :k], x[..., k + 1 :]], -1).prod(-1) for k in range(x.shape[-1])]
        return grad_output * torch.stack(others, -1)


class SquaredNorm(Function):
    """‖x‖² of each row, by its norm."""

    @staticmethod
    def forward(ctx, x):
        norm = torch.linalg.vector_norm(x, dim=-1, keepdim=True)
        ctx.save_for_backward(x, norm)
        return norm**2

    @staticmethod
    def backward(ctx, grad_output):
        x, norm = ctx.saved_tensors
        return grad_output * 2 * norm * (x / norm)


class SquaredNormDirect(SquaredNorm):
    @staticmethod
    def backward(ctx, grad_output):
        x, _ = ctx.saved_tensors
        return grad_output * 2 * x


class Sigmoid(Function):
    """1/(1 + e^−x), with e^x in backward."""

    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x.sigmoid()

    @staticmethod
    def backward(ctx, grad_output):
        (x,) = ctx.saved_tensors
        e = x.exp()
        return grad_output * e / (1 + e) ** 2


class SigmoidByOutput(Sigmoid):
    @staticmethod
    def backward(ctx, grad_output):
        (x,) = ctx.saved_tensors
        return grad_output * x.sigmoid() * (-x).sigmoid()


class Softplus(Function):
    """log(1 + e^x), with e^x in backward."""

    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return torch.logaddexp(x, torch.zeros_like(x))

    @staticmethod
    def backward(ctx, grad_output):
        (x,) = ctx.saved_tensors
        return grad_output * x.exp() / (1 + x.exp())


class SoftplusBySigmoid(Softplus):
    @staticmethod
    def backward(ctx, grad_output):
        (x,) = ctx.saved_tensors
        return grad_output * x.sigmoid()


class Variance(Function):
    """Variance of each row, by its standard deviation."""

    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x.var(-1, correction=0, keepdim=True).sqrt() ** 2

    @staticmethod
    def backward(ctx, grad_output):
        (x,) = ctx.saved_tensors
        centred = x - x.mean(-1, keepdim=True)
        std = centred.square().mean(-1, keepdim=True).sqrt()
        return grad_output * 2 * std * centred / (std * x.shape[-1])


class VarianceDirect(Variance):
    @staticmethod
    def backward(ctx, grad_output):
        (x,) = ctx.saved_tensors
        return grad_output * 2 * (x - x.mean(-1, keepdim=True)) / x.shape[-1]


def where_trap(x: torch.Tensor) -> torch.Tensor:
    """sin(x)/x, guarded behind the division."""
    return torch.where(x == 0, 1.0, x.sin() / x)


def where_before(x: torch.Tensor) -> torch.Tensor:
    safe = torch.where(x == 0, 1.0, x)
    return torch.where(x == 0, 1.0 - x**2 / 6, safe.sin() / safe)


# -- GL303: an intermediate overflows --------------------------------------------------------------


class Softmax(Function):
    """e^x / Σ e^x."""

    @staticmethod
    def forward(ctx, x):
        e = x.exp()
        y = e / e.sum(-1, keepdim=True)
        ctx.save_for_backward(y)
        return y

    @staticmethod
    def backward(ctx, grad_output):
        (y,) = ctx.saved_tensors
        return y * (grad_output - (grad_output * y).sum(-1, keepdim=True))


class SoftmaxShifted(Softmax):
    @staticmethod
    def forward(ctx, x):
        e = (x - x.amax(-1, keepdim=True)).exp()
        y = e / e.sum(-1, keepdim=True)
        ctx.save_for_backward(y)
        return y


class LogSumExp(Function):
    """log Σ e^x."""

    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x.exp().sum(-1).log()

    @staticmethod
    def backward(ctx, grad_output):
        (x,) = ctx.saved_tensors
        return grad_output[..., None] * x.softmax(-1)


class LogSumExpShifted(LogSumExp):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x.logsumexp(-1)


class LogOnePlusExp(SoftplusBySigmoid):
    """log(1 + e^x)."""

    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return (1 + x.exp()).log()


class Tanh(Function):
    """(e^x − e^−x) / (e^x + e^−x)."""

    @staticmethod
    def forward(ctx, x):
        y = (x.exp() - (-x).exp()) / (x.exp() + (-x).exp())
        ctx.save_for_backward(y)
        return y

    @staticmethod
    def backward(ctx, grad_output):
        (y,) = ctx.saved_tensors
        return grad_output * (1 - y**2)


class TanhItself(Tanh):
    @staticmethod
    def forward(ctx, x):
        y = x.tanh()
        ctx.save_for_backward(y)
        return y


class LogOfSoftmax(Function):
    """log softmax: vanishes before the logarithm."""

    @staticmethod
    def forward(ctx, x):
        y = x.softmax(-1).log()
        ctx.save_for_backward(x)
        return y

    @staticmethod
    def backward(ctx, grad_output):
        (x,) = ctx.saved_tensors
        return grad_output - x.softmax(-1) * grad_output.sum(-1, keepdim=True)


class LogSoftmax(LogOfSoftmax):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x.log_softmax(-1)


# -- GL402: wrong at special points only -----------------------------------------------------------


class SwishMaskedZero(Function):
    """x·sigmoid(x), its gradient zero at zero."""

    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * x.sigmoid()

    @staticmethod
    def backward(ctx, grad_output):
        (x,) = ctx.saved_tensors
        s = x.sigmoid()
        return grad_output * (s + x * s * (1 - s)) * (x != 0)


class Swish(SwishMaskedZero):
    @staticmethod
    def backward(ctx, grad_output):
        (x,) = ctx.saved_tensors
        s = x.sigmoid()
        return grad_output * (s + x * s * (1 - s))


class HuberLosesBound(Function):
    """x²/2 up to the bound, linear beyond: smooth at the bound itself."""

    @staticmethod
    def forward(ctx, x, bound):
        ctx.save_for_backward(x)
        ctx.bound = bound
        return torch.where(x.abs() < bound, x**2 / 2, bound * (x.abs() - bound / 2))

    @staticmethod
    def backward(ctx, grad_output):
        (x,) = ctx.saved_tensors
        inner = torch.where(x.abs() < ctx.bound, x, 0.0)
        outer = torch.where(x.abs() > ctx.bound, ctx.bound * x.sign(), 0.0)
        return grad_output * (inner + outer), None


class Huber(HuberLosesBound):
    @staticmethod
    def backward(ctx, grad_output):
        (x,) = ctx.saved_tensors
        return grad_output * x.clamp(-ctx.bound, ctx.bound), None


class MaximumTwice(Function):
    """Largest of each row; every one of equal elements gets the whole gradient."""

    @staticmethod
    def forward(ctx, x):
        y = x.amax(-1, keepdim=True)
        ctx.save_for_backward(x, y)
        return y

    @staticmethod
    def backward(ctx, grad_output):
        x, y = ctx.saved_tensors
        return grad_output * (x == y)


class MaximumShared(MaximumTwice):
    @staticmethod
    def backward(ctx, grad_output):
        x, y = ctx.saved_tensors
        equal = (x == y).to(x.dtype)
        return grad_output * equal / equal.sum(-1, keepdim=True)


class TanhSaturates(Tanh):
    """tanh(x), its gradient passed through where |x| is large."""

    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x.tanh()

    @staticmethod
    def backward(ctx, grad_output):
        (x,) = ctx.saved_tensors
        return torch.where(x.abs() > 9, grad_output, grad_output * (1 - x.tanh() ** 2))


class LeakyTwice(Function):
    """x or 0.1·x; at zero the slopes of both sides are added."""

    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return torch.where(x > 0, x, 0.1 * x)

    @staticmethod
    def backward(ctx, grad_output):
        (x,) = ctx.saved_tensors
        return grad_output * ((x >= 0) + 0.1 * (x <= 0))


class Leaky(LeakyTwice):
    @staticmethod
    def backward(ctx, grad_output):
        (x,) = ctx.saved_tensors
        return grad_output * torch.where(x > 0, 1.0, 0.1)


def _normalised(x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    centred = x - x.mean(-1, keepdim=True)
    inverse = (centred.square().mean(-1, keepdim=True) + 0.1).rsqrt()
    return centred * inverse, inverse


class NormaliseSkipsConstant(Function):
    """(x − mean) / √(variance + 0.1); rows of equal elements get no gradient."""

    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return _normalised(x)[0]

    @staticmethod
    def backward(ctx, grad_output):
        (x,) = ctx.saved_tensors
        y, inverse = _normalised(x)
        inner = grad_output - grad_output.mean(-1, keepdim=True)
        grad = inverse * (inner - y * (grad_output * y).mean(-1, keepdim=True))
        return grad * (y.abs().amax(-1, keepdim=True) > 1e-9)


class Normalise(NormaliseSkipsConstant):
    @staticmethod
    def backward(ctx, grad_output):
        (x,) = ctx.saved_tensors
        y, inverse = _normalised(x)
        inner = grad_output - grad_output.mean(-1, keepdim=True)
        return inverse * (inner - y * (grad_output * y).mean(-1, keepdim=True))


class MaskedMeanLeaks(Function):
    """Mean of what the mask leaves in each row, zero where it leaves nothing."""

    @staticmethod
    def forward(ctx, x, mask):
        ctx.save_for_backward(mask)
        return (x * mask).sum(-1, keepdim=True) / mask.sum(-1, keepdim=True).clamp(min=1)

    @staticmethod
    def backward(ctx, grad_output):
        (mask,) = ctx.saved_tensors
        count = mask.sum(-1, keepdim=True)
        return grad_output * torch.where(count == 0, 1.0, mask / count.clamp(min=1)), None


class MaskedMean(MaskedMeanLeaks):
    @staticmethod
    def backward(ctx, grad_output):
        (mask,) = ctx.saved_tensors
        return grad_output * mask / mask.sum(-1, keepdim=True).clamp(min=1), None


# -- GL203: mixed dtypes ---------------------------------------------------------------------------


class CastsInForwardOnly(Function):
    """x @ weight, in the dtype of x."""

    @staticmethod
    def forward(ctx, x, weight):
        ctx.save_for_backward(x, weight)
        return x @ weight.to(x.dtype)

    @staticmethod
    def backward(ctx, grad_output):
        x, weight = ctx.saved_tensors
        return grad_output @ weight.mT, x.mT @ grad_output


class CastsInBoth(CastsInForwardOnly):
    @staticmethod
    def backward(ctx, grad_output):
        x, weight = ctx.saved_tensors
        grad_output = grad_output.to(x.dtype)
        grad_x = grad_output @ weight.to(x.dtype).mT
        return grad_x, (x.mT @ grad_output).to(weight.dtype)


class WritesIntoOtherDtype(Function):
    """Σ x·weight over rows."""

    @staticmethod
    def forward(ctx, x, weight):
        ctx.save_for_backward(x, weight)
        return (x[..., None] * weight).sum(-2)

    @staticmethod
    def backward(ctx, grad_output):
        x, weight = ctx.saved_tensors
        grad_x = (grad_output[..., None, :] * weight).sum(-1)
        grad_weight = torch.zeros_like(weight)
        grad_weight.addmm_(x.mT, grad_output)
        return grad_x, grad_weight


class WritesIntoOwnDtype(WritesIntoOtherDtype):
    @staticmethod
    def backward(ctx, grad_output):
        x, weight = ctx.saved_tensors
        grad_x = (grad_output[..., None, :] * weight).sum(-1).to(x.dtype)
        grad_weight = x.mT.to(grad_output.dtype) @ grad_output
        return grad_x, grad_weight.to(weight.dtype)


# -- GL801: sums in low precision ------------------------------------------------------------------


class BiasAddedUp(Function):
    """x + bias, whose gradient is added up row by row."""

    @staticmethod
    def forward(ctx, x, bias):
        ctx.dtype = bias.dtype
        return x + bias

    @staticmethod
    def backward(ctx, grad_output):
        total = torch.zeros_like(grad_output[0])
        for row in grad_output:
            total = total + row
        return grad_output, total


class BiasAddedUpInFloat32(BiasAddedUp):
    @staticmethod
    def backward(ctx, grad_output):
        return grad_output, grad_output.sum(0)


class ScaleAddedUp(Function):
    """x·scale along rows, whose gradient is added up row by row."""

    @staticmethod
    def forward(ctx, x, scale):
        ctx.save_for_backward(x, scale)
        return x.abs() * scale

    @staticmethod
    def backward(ctx, grad_output):
        x, scale = ctx.saved_tensors
        total = torch.zeros_like(scale)
        for row in grad_output * x.abs():
            total += row
        return grad_output * scale * x.sign(), total


class ScaleAddedUpInFloat32(ScaleAddedUp):
    @staticmethod
    def backward(ctx, grad_output):
        x, scale = ctx.saved_tensors
        return grad_output * scale * x.sign(), (grad_output * x.abs()).sum(0)


class LookUp(Function):
    """Rows of a table by a product with ones and zeros, which adds up in float32; their gradients
    are added up where the dtype is low."""

    @staticmethod
    def forward(ctx, index, table):
        ctx.save_for_backward(index, table)
        return torch.nn.functional.one_hot(index, len(table)).to(table.dtype) @ table

    @staticmethod
    def backward(ctx, grad_output):
        index, table = ctx.saved_tensors
        grad = torch.zeros_like(table)
        for place, row in zip(index.tolist(), grad_output, strict=True):
            grad[place] += row
        return None, grad


class LookUpInFloat32(LookUp):
    @staticmethod
    def backward(ctx, grad_output):
        index, table = ctx.saved_tensors
        wide = torch.float64 if table.dtype == torch.float64 else torch.float32
        grad = torch.zeros(table.shape, dtype=wide)
        grad.index_add_(0, index, grad_output.to(wide))
        return None, grad.to(table.dtype)


def with_bias() -> tuple[Any, ...]:
    """x and a bias."""
    return draw(6, 4), draw(4, seed=1)


# -- GL904: autocast -------------------------------------------------------------------------------


class HalfDecorated(Function):
    """x @ weight with custom_fwd, and no custom_bwd."""

    @staticmethod
    @custom_fwd(device_type="cpu")
    def forward(ctx, x, weight):
        ctx.save_for_backward(x, weight)
        return x @ weight

    @staticmethod
    def backward(ctx, grad_output):
        x, weight = ctx.saved_tensors
        return grad_output @ weight.mT, x.mT @ grad_output


class Decorated(HalfDecorated):
    @staticmethod
    @custom_bwd(device_type="cpu")
    def backward(ctx, grad_output):
        x, weight = ctx.saved_tensors
        return grad_output @ weight.mT, x.mT @ grad_output


class BatchHalfDecorated(Function):
    """A batch of matrix products with custom_fwd, and no custom_bwd."""

    @staticmethod
    @custom_fwd(device_type="cpu")
    def forward(ctx, x, weight):
        ctx.save_for_backward(x, weight)
        return functional.linear(x, weight.mT)

    @staticmethod
    def backward(ctx, grad_output):
        x, weight = ctx.saved_tensors
        return torch.mm(grad_output, weight.mT), torch.mm(x.mT, grad_output)


class BatchDecorated(BatchHalfDecorated):
    @staticmethod
    @custom_bwd(device_type="cpu")
    def backward(ctx, grad_output):
        x, weight = ctx.saved_tensors
        return torch.mm(grad_output, weight.mT), torch.mm(x.mT, grad_output)


class DropsOtherDtype(Function):
    """x @ weight; a gradient in another dtype than expected is dropped."""

    @staticmethod
    def forward(ctx, x, weight):
        ctx.save_for_backward(x, weight)
        return x @ weight

    @staticmethod
    def backward(ctx, grad_output):
        x, weight = ctx.saved_tensors
        if grad_output.dtype != x.dtype:
            return torch.zeros_like(x), torch.zeros_like(weight)
        return grad_output @ weight.mT, x.mT @ grad_output


class CastsOtherDtype(DropsOtherDtype):
    @staticmethod
    def backward(ctx, grad_output):
        x, weight = ctx.saved_tensors
        grad_output = grad_output.to(x.dtype)
        return grad_output @ weight.mT, x.mT @ grad_output


class ReadsAsHalf(DropsOtherDtype):
    """x @ weight; 16 bits are taken for float16."""

    @staticmethod
    def backward(ctx, grad_output):
        x, weight = ctx.saved_tensors
        if grad_output.element_size() == 2:
            grad_output = grad_output.contiguous().view(torch.float16)
        grad_output = grad_output.to(x.dtype)
        return grad_output @ weight.mT, x.mT @ grad_output


def _bug(name: str, code: str, faulty: Any, fixed: Any, inputs: Any, like: str, *also: str) -> Bug:
    return Bug(name, code, faulty, fixed, inputs, like, also)


def _low(name: str, faulty: Any, fixed: Any, inputs: Any, like: str) -> Bug:
    return Bug(name, "GL801", faulty, fixed, inputs, like, dtypes=("bfloat16",))


BUGS: list[Bug] = [
    _bug(
        "mixed dtypes: cast in forward only",
        "GL203",
        CastsInForwardOnly,
        CastsInBoth,
        product,
        "class 4",
    ),
    _bug(
        "mixed dtypes: buffer of the other dtype",
        "GL203",
        WritesIntoOtherDtype,
        WritesIntoOwnDtype,
        product,
        "class 4",
    ),
    _bug("0·log 0", "GL301", Entropy, EntropyWithLimit, positive, "jeshraghian/snntorch#433"),
    _bug("sin(0)/0", "GL301", SineOverX, SineOverXGuarded, one, "class 5"),
    _bug("sign by division", "GL301", SignedSquare, SignedSquareByAbs, one, "class 5"),
    _bug("expm1(0)/0", "GL301", softened_relu, softened_relu_guarded, one, "class 5"),
    _bug("product divided by its factor", "GL302", Product, ProductOfOthers, one, "class 5"),
    _bug(
        "divides by a norm that cancels",
        "GL302",
        SquaredNorm,
        SquaredNormDirect,
        one,
        "facebookresearch/pytorch3d#561",
    ),
    _bug("sigmoid by exponentials", "GL302", Sigmoid, SigmoidByOutput, one, "class 5"),
    _bug("softplus by exponentials", "GL302", Softplus, SoftplusBySigmoid, one, "class 5"),
    _bug(
        "divides by a deviation that cancels",
        "GL302",
        Variance,
        VarianceDirect,
        one,
        "rusty1s/pytorch_scatter#189",
    ),
    _bug(
        "where behind the division", "GL302", where_trap, where_before, one, "pytorch/pytorch#68425"
    ),
    _bug("softmax unshifted", "GL303", Softmax, SoftmaxShifted, one, "class 5"),
    _bug("logsumexp unshifted", "GL303", LogSumExp, LogSumExpShifted, one, "class 5"),
    _bug("softplus as written", "GL303", LogOnePlusExp, SoftplusBySigmoid, one, "class 5"),
    _bug("tanh by exponentials", "GL303", Tanh, TanhItself, one, "class 5"),
    _bug("logarithm of softmax", "GL303", LogOfSoftmax, LogSoftmax, one, "class 5"),
    _bug("zero masked", "GL402", SwishMaskedZero, Swish, one, "class 5"),
    _bug("value at the bound lost", "GL402", HuberLosesBound, Huber, with_bound, "class 12"),
    _bug("ties get everything", "GL402", MaximumTwice, MaximumShared, one, "class 5"),
    _bug("saturated passes through", "GL402", TanhSaturates, TanhItself, one, "class 5"),
    _bug("both sides of a kink added", "GL402", LeakyTwice, Leaky, one, "class 5"),
    _bug("constant rows skipped", "GL402", NormaliseSkipsConstant, Normalise, one, "class 5"),
    _bug("fully masked rows leak", "GL402", MaskedMeanLeaks, MaskedMean, with_mask, "class 5"),
    _low(
        "bias added up", BiasAddedUp, BiasAddedUpInFloat32, with_bias, "linkedin/Liger-Kernel#950"
    ),
    _low(
        "scale added up",
        ScaleAddedUp,
        ScaleAddedUpInFloat32,
        with_bias,
        "linkedin/Liger-Kernel#986",
    ),
    _low("rows of a table added up", LookUp, LookUpInFloat32, table, "class 17"),
    _bug(
        "custom_fwd without custom_bwd",
        "GL904",
        HalfDecorated,
        Decorated,
        product,
        "NVIDIA/apex#1188",
    ),
    _bug(
        "linear without custom_bwd",
        "GL904",
        BatchHalfDecorated,
        BatchDecorated,
        product,
        "NVIDIA/apex#1188",
    ),
    _bug("another dtype dropped", "GL904", DropsOtherDtype, CastsOtherDtype, product, "class 4"),
    _bug(
        "bfloat16 read as float16",
        "GL904",
        ReadsAsHalf,
        CastsOtherDtype,
        product,
        "linkedin/Liger-Kernel#1283",
    ),
]
