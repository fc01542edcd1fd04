"""Bugs of memory layout and size: GL7, and of float arguments that backward leaves out."""

from __future__ import annotations

from typing import Any

import torch
from torch.autograd import Function

from tests.benchmarks.support.planted_bugs import Bug


def _randn(*shape: int) -> torch.Tensor:
    generator = torch.Generator().manual_seed(sum(shape))
    return torch.randn(*shape, generator=generator, dtype=torch.float64)


def _one() -> tuple[Any, ...]:
    return (_randn(4, 6).requires_grad_(),)


def _images() -> tuple[Any, ...]:
    return (_randn(2, 3, 4, 5).requires_grad_(),)


def _pair() -> tuple[Any, ...]:
    return _randn(4, 6).requires_grad_(), (_randn(4, 6) * 0.7 + 0.2).requires_grad_()


def _with_mask() -> tuple[Any, ...]:
    x = _randn(4, 6)
    return x.clone().requires_grad_(), x > 0.3


def _with_row() -> tuple[Any, ...]:
    return _randn(4, 6).requires_grad_(), _randn(6).requires_grad_()


def _with_column() -> tuple[Any, ...]:
    return _randn(5, 3).requires_grad_(), _randn(5).requires_grad_()


def _with_scalar(value: float) -> Any:
    return lambda: (_randn(4, 6).requires_grad_(), value)


def in_a_row(tensor: torch.Tensor) -> torch.Tensor:
    """What a kernel reads that takes the address of ``tensor`` for that of a contiguous one."""
    steps = torch.empty(tensor.shape, device="meta").stride()
    return torch.as_strided(tensor, tensor.shape, steps, tensor.storage_offset())


def rows_apart(tensor: torch.Tensor) -> torch.Tensor:
    """What a kernel reads that asks for the distance of rows, and not for that of columns."""
    return torch.as_strided(tensor, tensor.shape, (tensor.stride(0), 1), tensor.storage_offset())


def from_the_start(tensor: torch.Tensor) -> torch.Tensor:
    """What a kernel reads that takes the address of the storage, not of ``tensor``."""
    return torch.as_strided(tensor, tensor.shape, tensor.stride(), 0)


# -- grad_output not contiguous --------------------------------------------------------------------


class SineInARow(Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x.sin()

    @staticmethod
    def backward(ctx, grad_output):
        (x,) = ctx.saved_tensors
        return in_a_row(grad_output) * x.cos()


class Sine(SineInARow):
    @staticmethod
    def backward(ctx, grad_output):
        (x,) = ctx.saved_tensors
        return in_a_row(grad_output.contiguous()) * x.cos()


class SineByRows(SineInARow):
    @staticmethod
    def backward(ctx, grad_output):
        (x,) = ctx.saved_tensors
        return rows_apart(grad_output) * x.cos()


class SineByStrides(SineInARow):
    @staticmethod
    def backward(ctx, grad_output):
        (x,) = ctx.saved_tensors
        steps, start = grad_output.stride(), grad_output.storage_offset()
        return torch.as_strided(grad_output, grad_output.shape, steps, start) * x.cos()


class SineViewed(SineInARow):
    @staticmethod
    def backward(ctx, grad_output):
        (x,) = ctx.saved_tensors
        return (grad_output.view(-1) * x.cos().reshape(-1)).view(x.shape)


class SineReshaped(SineInARow):
    @staticmethod
    def backward(ctx, grad_output):
        (x,) = ctx.saved_tensors
        return (grad_output.reshape(-1) * x.cos().reshape(-1)).view(x.shape)


class SineAsserted(SineInARow):
    @staticmethod
    def backward(ctx, grad_output):
        (x,) = ctx.saved_tensors
        assert grad_output.is_contiguous(), "grad_output must be contiguous"
        return grad_output * x.cos()


class SineIntoLike(SineInARow):
    @staticmethod
    def backward(ctx, grad_output):
        (x,) = ctx.saved_tensors
        # A tensor "like" a transposed one is transposed; a kernel fills it in a row.
        grad = torch.empty_like(grad_output)
        in_a_row(grad).copy_(grad_output * x.cos())
        return grad


class SineIntoContiguous(SineInARow):
    @staticmethod
    def backward(ctx, grad_output):
        (x,) = ctx.saved_tensors
        grad = torch.empty_like(grad_output, memory_format=torch.contiguous_format)
        in_a_row(grad).copy_(grad_output * x.cos())
        return grad


class ChannelSums(Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x.square()

    @staticmethod
    def backward(ctx, grad_output):
        (x,) = ctx.saved_tensors
        if grad_output.is_contiguous(memory_format=torch.channels_last):
            n, c, h, w = grad_output.shape
            nhwc = torch.as_strided(grad_output, (n, h, w, c), (c * h * w, w * c, c, 1))
            return 2 * x * nhwc.permute(0, 3, 2, 1).reshape(x.shape)
        return 2 * x * grad_output


class ChannelSumsRight(ChannelSums):
    @staticmethod
    def backward(ctx, grad_output):
        (x,) = ctx.saved_tensors
        if grad_output.is_contiguous(memory_format=torch.channels_last):
            n, c, h, w = grad_output.shape
            start = grad_output.storage_offset()
            nhwc = torch.as_strided(grad_output, (n, h, w, c), (c * h * w, w * c, c, 1), start)
            return 2 * x * nhwc.permute(0, 3, 1, 2)
        return 2 * x * grad_output


# -- grad_output expanded --------------------------------------------------------------------------


class AddsInPlace(Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x.square() / 2 + x

    @staticmethod
    def backward(ctx, grad_output):
        (x,) = ctx.saved_tensors
        return grad_output.mul_(1 + x)


class AddsToCopy(AddsInPlace):
    @staticmethod
    def backward(ctx, grad_output):
        (x,) = ctx.saved_tensors
        return grad_output.clone(memory_format=torch.contiguous_format).mul_(1 + x)


class SameStrides(AddsInPlace):
    @staticmethod
    def backward(ctx, grad_output):
        (x,) = ctx.saved_tensors
        grad = torch.empty_strided(x.shape, grad_output.stride(), dtype=x.dtype, device=x.device)
        for row in range(x.shape[0]):
            for column in range(x.shape[1]):
                grad[row, column] = (1 + x[row, column]) * grad_output[row, column]
        return grad.clone()


class OwnStrides(AddsInPlace):
    @staticmethod
    def backward(ctx, grad_output):
        (x,) = ctx.saved_tensors
        grad = torch.empty_like(x)
        for row in range(x.shape[0]):
            for column in range(x.shape[1]):
                grad[row, column] = (1 + x[row, column]) * grad_output[row, column]
        return grad


class ExpandedIsDense(AddsInPlace):
    @staticmethod
    def backward(ctx, grad_output):
        (x,) = ctx.saved_tensors
        # Contiguous, or transposed and then made so: stride 0 is neither.
        if grad_output.stride(-1) > 1:
            grad_output = grad_output.contiguous()
        return in_a_row(grad_output) * (1 + x)


class ExpandedIsCopied(AddsInPlace):
    @staticmethod
    def backward(ctx, grad_output):
        (x,) = ctx.saved_tensors
        if not grad_output.is_contiguous():
            grad_output = grad_output.contiguous()
        return in_a_row(grad_output) * (1 + x)


class SumInPlace(AddsInPlace):
    @staticmethod
    def backward(ctx, grad_output):
        (x,) = ctx.saved_tensors
        grad_output += grad_output * x
        return grad_output


class SumOutOfPlace(AddsInPlace):
    @staticmethod
    def backward(ctx, grad_output):
        (x,) = ctx.saved_tensors
        return grad_output + grad_output * x


# -- inputs not contiguous -------------------------------------------------------------------------


class ExpInARow(Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return in_a_row(x).exp()

    @staticmethod
    def backward(ctx, grad_output):
        (x,) = ctx.saved_tensors
        return grad_output * x.exp()


class ExpOfContiguous(ExpInARow):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return in_a_row(x.contiguous()).exp()


class SavedInARow(ExpInARow):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x.exp()

    @staticmethod
    def backward(ctx, grad_output):
        (x,) = ctx.saved_tensors
        return grad_output * in_a_row(x).exp()


class SavedContiguous(SavedInARow):
    @staticmethod
    def backward(ctx, grad_output):
        (x,) = ctx.saved_tensors
        return grad_output * in_a_row(x.contiguous()).exp()


class ViewsInBackward(SavedInARow):
    @staticmethod
    def backward(ctx, grad_output):
        (x,) = ctx.saved_tensors
        return (grad_output.reshape(-1) * x.view(-1).exp()).view(x.shape)


class ReshapesInBackward(SavedInARow):
    @staticmethod
    def backward(ctx, grad_output):
        (x,) = ctx.saved_tensors
        return (grad_output.reshape(-1) * x.reshape(-1).exp()).view(x.shape)


class MaskInARow(Function):
    @staticmethod
    def forward(ctx, x, mask):
        ctx.save_for_backward(mask)
        return x * mask

    @staticmethod
    def backward(ctx, grad_output):
        (mask,) = ctx.saved_tensors
        return grad_output * in_a_row(mask), None


class MaskContiguous(MaskInARow):
    @staticmethod
    def backward(ctx, grad_output):
        (mask,) = ctx.saved_tensors
        return grad_output * in_a_row(mask.contiguous()), None


class SideBySide(Function):
    """Reads two dense tensors in the order of their memory: right where both lie alike."""

    @staticmethod
    def forward(ctx, x, y):
        ctx.save_for_backward(x, y)
        dense = x.stride() == y.stride() or x.is_contiguous()
        return x * (in_a_row(y) if dense and x.is_contiguous() else y)

    @staticmethod
    def backward(ctx, grad_output):
        x, y = ctx.saved_tensors
        return grad_output * y, grad_output * x


class SideBySideRight(SideBySide):
    @staticmethod
    def forward(ctx, x, y):
        ctx.save_for_backward(x, y)
        dense = x.is_contiguous() and y.is_contiguous()
        return x * (in_a_row(y) if dense else y)


# -- storage offset --------------------------------------------------------------------------------


class GradFromTheStart(SineInARow):
    @staticmethod
    def backward(ctx, grad_output):
        (x,) = ctx.saved_tensors
        return from_the_start(grad_output.contiguous()) * x.cos()


class GradWhereItIs(SineInARow):
    @staticmethod
    def backward(ctx, grad_output):
        (x,) = ctx.saved_tensors
        return in_a_row(grad_output.contiguous()) * x.cos()


class InputFromTheStart(SineInARow):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return from_the_start(x.contiguous()).sin()

    @staticmethod
    def backward(ctx, grad_output):
        (x,) = ctx.saved_tensors
        return grad_output * x.cos()


class InputWhereItIs(InputFromTheStart):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return in_a_row(x.contiguous()).sin()


class SavedFromTheStart(InputWhereItIs):
    @staticmethod
    def backward(ctx, grad_output):
        (x,) = ctx.saved_tensors
        return grad_output * from_the_start(x.contiguous()).cos()


class VectorLoads(InputWhereItIs):
    @staticmethod
    def backward(ctx, grad_output):
        (x,) = ctx.saved_tensors
        if grad_output.data_ptr() % 16:
            raise RuntimeError("misaligned address")
        return grad_output * x.cos()


class VectorLoadsWherePossible(InputWhereItIs):
    @staticmethod
    def backward(ctx, grad_output):
        (x,) = ctx.saved_tensors
        if grad_output.data_ptr() % 16:
            grad_output = grad_output.clone()
        return grad_output * x.cos()


# -- empty tensors ---------------------------------------------------------------------------------


class MeanOfNothing(Function):
    @staticmethod
    def forward(ctx, x, scale):
        ctx.save_for_backward(x, scale)
        return x * scale

    @staticmethod
    def backward(ctx, grad_output):
        x, scale = ctx.saved_tensors
        products = grad_output * x
        return grad_output * scale, products.mean(0) * len(products)


class SumOfNothing(MeanOfNothing):
    @staticmethod
    def backward(ctx, grad_output):
        x, scale = ctx.saved_tensors
        return grad_output * scale, (grad_output * x).sum(0)


class NotLaunched(MeanOfNothing):
    @staticmethod
    def backward(ctx, grad_output):
        x, scale = ctx.saved_tensors
        grad_scale = torch.empty_like(scale)
        if x.numel():  # a grid of no blocks can't be launched
            grad_scale.copy_((grad_output * x).reshape(-1, len(scale)).sum(0))
        return grad_output * scale, grad_scale


class Zeroed(MeanOfNothing):
    @staticmethod
    def backward(ctx, grad_output):
        x, scale = ctx.saved_tensors
        grad_scale = torch.zeros_like(scale)
        if x.numel():
            grad_scale.copy_((grad_output * x).reshape(-1, len(scale)).sum(0))
        return grad_output * scale, grad_scale


class StacksRows(MeanOfNothing):
    @staticmethod
    def backward(ctx, grad_output):
        x, scale = ctx.saved_tensors
        rows = [grad_output[k] * scale for k in range(len(x))]
        return torch.stack(rows), (grad_output * x).sum(0)


class FillsRows(MeanOfNothing):
    @staticmethod
    def backward(ctx, grad_output):
        x, scale = ctx.saved_tensors
        grad = torch.zeros_like(x)
        for k in range(len(x)):
            grad[k] = grad_output[k] * scale
        return grad, (grad_output * x).sum(0)


class Rescaled(MeanOfNothing):
    @staticmethod
    def backward(ctx, grad_output):
        x, scale = ctx.saved_tensors
        top = grad_output.abs().max()
        return grad_output / top * scale * top, (grad_output * x).sum(0)


# -- odd sizes -------------------------------------------------------------------------------------


def _blocks(size: int, block: int, *, masked: bool) -> list[slice]:
    end = size if masked else size // block * block
    return [slice(start, min(start + block, size)) for start in range(0, end, block)]


class TailLost(Function):
    BLOCK, MASKED = 4, False

    @staticmethod
    def forward(ctx, x, weight):
        ctx.save_for_backward(x, weight)
        return (x * weight).sum(-1)

    @classmethod
    def backward(cls, ctx, grad_output):
        x, weight = ctx.saved_tensors
        grad_weight = torch.zeros_like(weight)
        for rows in _blocks(x.shape[0], cls.BLOCK, masked=cls.MASKED):
            grad_weight += (grad_output[rows, None] * x[rows]).sum(0)
        return grad_output[:, None] * weight, grad_weight


class TailKept(TailLost):
    MASKED = True


class ColumnsLost(Function):
    BLOCK, MASKED = 3, False

    @staticmethod
    def forward(ctx, x):
        y = torch.softmax(x, -1)
        ctx.save_for_backward(y)
        return y

    @classmethod
    def backward(cls, ctx, grad_output):
        (y,) = ctx.saved_tensors
        dot = torch.zeros_like(y[..., :1])
        for columns in _blocks(y.shape[-1], cls.BLOCK, masked=cls.MASKED):
            dot = dot + (grad_output * y)[..., columns].sum(-1, keepdim=True)
        return y * (grad_output - dot)


class ColumnsKept(ColumnsLost):
    MASKED = True


class LongRowsLost(ColumnsLost):
    """One block of 1024 threads a row, and no loop."""

    @classmethod
    def backward(cls, ctx, grad_output):
        (y,) = ctx.saved_tensors
        dot = (grad_output * y)[..., :1024].sum(-1, keepdim=True)
        return y * (grad_output - dot)


class LongRowsKept(ColumnsLost):
    @classmethod
    def backward(cls, ctx, grad_output):
        (y,) = ctx.saved_tensors
        return y * (grad_output - (grad_output * y).sum(-1, keepdim=True))


class Squeezes(Function):
    @staticmethod
    def forward(ctx, x, scale):
        ctx.save_for_backward(x, scale)
        return x * scale[:, None]

    @staticmethod
    def backward(ctx, grad_output):
        x, scale = ctx.saved_tensors
        products = (grad_output * x).sum(1, keepdim=True)
        return grad_output * scale[:, None], products.squeeze()


class SqueezesOneAxis(Squeezes):
    @staticmethod
    def backward(ctx, grad_output):
        x, scale = ctx.saved_tensors
        products = (grad_output * x).sum(1, keepdim=True)
        return grad_output * scale[:, None], products.squeeze(1)


class FixedSize(LongRowsLost):
    @classmethod
    def backward(cls, ctx, grad_output):
        (y,) = ctx.saved_tensors
        mean = (grad_output * y).mean(-1, keepdim=True)
        return y * (grad_output - 6 * mean)


class AnySize(FixedSize):
    @classmethod
    def backward(cls, ctx, grad_output):
        (y,) = ctx.saved_tensors
        mean = (grad_output * y).mean(-1, keepdim=True)
        return y * (grad_output - y.shape[-1] * mean)


class SecondAxis(ColumnsLost):
    """Softmax along the last axis, backward along the second: one and the same for matrices."""

    @classmethod
    def backward(cls, ctx, grad_output):
        (y,) = ctx.saved_tensors
        return y * (grad_output - (grad_output * y).sum(1, keepdim=True))


# -- no dimensions ---------------------------------------------------------------------------------


class Loops(SineInARow):
    @staticmethod
    def backward(ctx, grad_output):
        (x,) = ctx.saved_tensors
        grad = torch.zeros_like(x)
        for k in range(len(x)):
            grad[k] = grad_output[k] * x[k].cos()
        return grad


class Flat(SineInARow):
    @staticmethod
    def backward(ctx, grad_output):
        (x,) = ctx.saved_tensors
        return grad_output * x.cos()


class Concatenates(SineInARow):
    @staticmethod
    def backward(ctx, grad_output):
        (x,) = ctx.saved_tensors
        return torch.cat([part * x.cos() for part in (grad_output,)], dim=0)


class SizeOfFirst(SineInARow):
    @staticmethod
    def backward(ctx, grad_output):
        (x,) = ctx.saved_tensors
        return (grad_output * x.cos()).view(x.shape[0], -1).view(x.shape)


class ItemInBackward(SineInARow):
    @staticmethod
    def backward(ctx, grad_output):
        (x,) = ctx.saved_tensors
        # Scalars come from reductions, it is thought: their gradient is one.
        return x.cos() if not x.dim() else grad_output * x.cos()


# -- float arguments -------------------------------------------------------------------------------


class ScaleForgotten(Function):
    @staticmethod
    def forward(ctx, x, scale):
        ctx.scale = scale
        ctx.save_for_backward(x)
        return x.square() * scale

    @staticmethod
    def backward(ctx, grad_output):
        (x,) = ctx.saved_tensors
        return grad_output * 2 * x, None


class ScaleUsed(ScaleForgotten):
    @staticmethod
    def backward(ctx, grad_output):
        (x,) = ctx.saved_tensors
        return grad_output * 2 * x * ctx.scale, None


class SlopeForgotten(Function):
    @staticmethod
    def forward(ctx, x, slope):
        ctx.slope = slope
        ctx.save_for_backward(x)
        return torch.where(x > 0, x, slope * x)

    @staticmethod
    def backward(ctx, grad_output):
        (x,) = ctx.saved_tensors
        return grad_output * (x > 0), None


class SlopeUsed(SlopeForgotten):
    @staticmethod
    def backward(ctx, grad_output):
        (x,) = ctx.saved_tensors
        return torch.where(x > 0, grad_output, ctx.slope * grad_output), None


class ExponentFixed(Function):
    @staticmethod
    def forward(ctx, x, p=2.0):
        ctx.p = p
        ctx.save_for_backward(x)
        return x.abs() ** p

    @staticmethod
    def backward(ctx, grad_output):
        (x,) = ctx.saved_tensors
        return grad_output * 2 * x, None


class ExponentUsed(ExponentFixed):
    @staticmethod
    def backward(ctx, grad_output):
        (x,) = ctx.saved_tensors
        return grad_output * ctx.p * x.abs() ** (ctx.p - 1) * x.sign(), None


class TemperatureForgotten(Function):
    @staticmethod
    def forward(ctx, x, temperature=1.0):
        y = torch.softmax(x / temperature, -1)
        ctx.temperature = temperature
        ctx.save_for_backward(y)
        return y

    @staticmethod
    def backward(ctx, grad_output):
        (y,) = ctx.saved_tensors
        return y * (grad_output - (grad_output * y).sum(-1, keepdim=True)), None


class TemperatureUsed(TemperatureForgotten):
    @staticmethod
    def backward(ctx, grad_output):
        (y,) = ctx.saved_tensors
        grad = y * (grad_output - (grad_output * y).sum(-1, keepdim=True))
        return grad / ctx.temperature, None


def _bug(name: str, code: str, faulty: Any, fixed: Any, inputs: Any, like: str, *also: str) -> Bug:
    return Bug(name, code, faulty, fixed, inputs, like, also)


BUGS: list[Bug] = [
    _bug("grad_output read in a row", "GL701", SineInARow, Sine, _one, "pytorch/vision#920"),
    _bug("rows of grad_output apart", "GL701", SineByRows, SineByStrides, _one, "class 1"),
    _bug("grad_output viewed", "GL701", SineViewed, SineReshaped, _one, "class 1"),
    _bug("grad_output asserted contiguous", "GL701", SineAsserted, Sine, _one, "class 1"),
    _bug(
        "written into a tensor like it", "GL701", SineIntoLike, SineIntoContiguous, _one, "class 1"
    ),
    _bug("channels_last mistaken", "GL701", ChannelSums, ChannelSumsRight, _images, "class 1"),
    _bug("grad_output scaled in place", "GL702", AddsInPlace, AddsToCopy, _one, "class 10"),
    _bug("strides of an expanded tensor", "GL702", SameStrides, OwnStrides, _one, "class 1"),
    _bug("expanded taken for dense", "GL702", ExpandedIsDense, ExpandedIsCopied, _one, "class 1"),
    _bug("grad_output added to in place", "GL702", SumInPlace, SumOutOfPlace, _one, "class 10"),
    _bug("input read in a row", "GL703", ExpInARow, ExpOfContiguous, _one, "class 1"),
    _bug("saved input read in a row", "GL703", SavedInARow, SavedContiguous, _one, "class 1"),
    _bug("saved input viewed", "GL703", ViewsInBackward, ReshapesInBackward, _one, "class 1"),
    _bug("mask read in a row", "GL703", MaskInARow, MaskContiguous, _with_mask, "class 1"),
    _bug("two inputs side by side", "GL703", SideBySide, SideBySideRight, _pair, "class 1"),
    _bug("grad_output from the start", "GL704", GradFromTheStart, GradWhereItIs, _one, "class 18"),
    _bug("input from the start", "GL704", InputFromTheStart, InputWhereItIs, _one, "class 18"),
    _bug(
        "saved input from the start", "GL704", SavedFromTheStart, InputWhereItIs, _one, "class 18"
    ),
    _bug(
        "vector loads", "GL704", VectorLoads, VectorLoadsWherePossible, _one, "pytorch/FBGEMM#1212"
    ),
    _bug("mean of nothing", "GL705", MeanOfNothing, SumOfNothing, _with_row, "class 20"),
    _bug("not launched", "GL705", NotLaunched, Zeroed, _with_row, "pytorch/FBGEMM#1993"),
    _bug("stacks no rows", "GL705", StacksRows, FillsRows, _with_row, "class 20"),
    _bug("largest of nothing", "GL705", Rescaled, SumOfNothing, _with_row, "class 20"),
    _bug("tail of rows lost", "GL706", TailLost, TailKept, _with_row, "state-spaces/mamba#368"),
    _bug("tail of columns lost", "GL706", ColumnsLost, ColumnsKept, _one, "open-mmlab/mmcv#1212"),
    _bug("rows longer than a block", "GL706", LongRowsLost, LongRowsKept, _one, "class 6"),
    _bug("squeezes a batch of one", "GL706", Squeezes, SqueezesOneAxis, _with_column, "class 12"),
    _bug("size written as a number", "GL706", FixedSize, AnySize, _one, "class 12"),
    _bug(
        "second axis for the last", "GL706", SecondAxis, LongRowsKept, _one, "deep-spin/entmax#18"
    ),
    _bug("loops over the first axis", "GL707", Loops, Flat, _one, "class 12"),
    _bug("concatenates", "GL707", Concatenates, Flat, _one, "class 12"),
    _bug("size of the first axis", "GL707", SizeOfFirst, Flat, _one, "class 12"),
    _bug("gradient of scalars taken for one", "GL707", ItemInBackward, Flat, _one, "class 12"),
    _bug("scale forgotten", "GL401", ScaleForgotten, ScaleUsed, _with_scalar(1.0), "class 12"),
    _bug("slope forgotten", "GL401", SlopeForgotten, SlopeUsed, _with_scalar(0.0), "class 12"),
    _bug("exponent written as a number", "GL401", ExponentFixed, ExponentUsed, _one, "class 12"),
    _bug("temperature left out", "GL401", TemperatureForgotten, TemperatureUsed, _one, "class 12"),
]
