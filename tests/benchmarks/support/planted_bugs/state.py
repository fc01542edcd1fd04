"""Bugs of side effects and state: GL6."""

from __future__ import annotations

import itertools
import random
from typing import Any

import numpy
import torch
from torch.autograd import Function

from tests.benchmarks.support.planted_bugs import Bug

_X = torch.tensor([[0.7, -1.3, 2.1, 0.4], [-0.2, 1.6, -2.4, 0.9], [1.1, -0.6, 0.3, -1.8]])
_INDEX = torch.tensor([2, -3, 1])


def _one() -> tuple[Any, ...]:
    return (_X.double().requires_grad_(),)


def _two() -> tuple[Any, ...]:
    return _X.double().requires_grad_(), (_X.flip(0) * 0.8 + 0.1).double().requires_grad_()


def _with_index() -> tuple[Any, ...]:
    return _X.double().requires_grad_(), _INDEX.clone()


def _with_mask() -> tuple[Any, ...]:
    return _X.double().requires_grad_(), (_X > 0)


def _with_scale() -> tuple[Any, ...]:
    return _X.double().requires_grad_(), 1.5


# -- inputs ----------------------------------------------------------------------------------------


class ClampsInput(Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x > 0)
        return x.clamp_(min=0) * 2

    @staticmethod
    def backward(ctx, grad_output):
        (positive,) = ctx.saved_tensors
        return grad_output * 2 * positive


class ClampsCopy(ClampsInput):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x > 0)
        return x.clamp(min=0) * 2


class WritesThroughNumpy(Function):
    """A kernel's write: no version counter moves."""

    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(torch.sign(x))
        view = x.detach().numpy()
        view *= numpy.sign(view)
        return torch.from_numpy(view.copy())

    @staticmethod
    def backward(ctx, grad_output):
        (sign,) = ctx.saved_tensors
        return grad_output * sign


class WritesCopyThroughNumpy(WritesThroughNumpy):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(torch.sign(x))
        return torch.from_numpy(abs(x.detach().numpy()))


class WrapsIndex(Function):
    @staticmethod
    def forward(ctx, x, index):
        index.remainder_(x.shape[1])
        ctx.save_for_backward(index.clone())
        ctx.shape = x.shape
        return x.gather(1, index[:, None])

    @staticmethod
    def backward(ctx, grad_output):
        (index,) = ctx.saved_tensors
        grad = grad_output.new_zeros(ctx.shape)
        return grad.scatter(1, index[:, None], grad_output), None


class WrapsIndexCopy(WrapsIndex):
    @staticmethod
    def forward(ctx, x, index):
        index = index.remainder(x.shape[1])
        ctx.save_for_backward(index)
        ctx.shape = x.shape
        return x.gather(1, index[:, None])


class ReturnsInputMemory(Function):
    """The identity with a scaled gradient, of detached memory."""

    @staticmethod
    def forward(ctx, x):
        return x.detach()

    @staticmethod
    def backward(ctx, grad_output):
        return grad_output


class ReturnsInput(ReturnsInputMemory):
    @staticmethod
    def forward(ctx, x):
        return x.clone()


class ClearsMaskInBackward(Function):
    @staticmethod
    def forward(ctx, x, mask):
        ctx.mask = mask
        return x * mask

    @staticmethod
    def backward(ctx, grad_output):
        grad = grad_output * ctx.mask
        ctx.mask.logical_not_()
        return grad, None


class KeepsMaskInBackward(Function):
    @staticmethod
    def forward(ctx, x, mask):
        ctx.save_for_backward(mask)
        return x * mask

    @staticmethod
    def backward(ctx, grad_output):
        (mask,) = ctx.saved_tensors
        return grad_output * mask, None


# -- grad_output -----------------------------------------------------------------------------------


class ScalesGradOutput(Function):
    @staticmethod
    def forward(ctx, x):
        return x * 3

    @staticmethod
    def backward(ctx, grad_output):
        return grad_output.mul_(3)


class ScalesGradient(ScalesGradOutput):
    @staticmethod
    def backward(ctx, grad_output):
        return grad_output * 3


class ClipsContiguous(Function):
    """``.contiguous()`` is taken for a copy."""

    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x.clamp(min=0)

    @staticmethod
    def backward(ctx, grad_output):
        (x,) = ctx.saved_tensors
        grad = grad_output.contiguous()
        grad[x <= 0] = 0
        return grad


class ClipsClone(ClipsContiguous):
    @staticmethod
    def backward(ctx, grad_output):
        (x,) = ctx.saved_tensors
        return grad_output * (x > 0)


class FusesIntoGradient(Function):
    """Gradients of both factors are written where grad_output was."""

    @staticmethod
    def forward(ctx, a, b):
        ctx.save_for_backward(a, b)
        return a * b

    @staticmethod
    def backward(ctx, grad_output):
        a, b = ctx.saved_tensors
        grad_b = grad_output * a
        return torch.mul(grad_output, b, out=grad_output), grad_b


class TwoGradients(FusesIntoGradient):
    @staticmethod
    def backward(ctx, grad_output):
        a, b = ctx.saved_tensors
        return grad_output * b, grad_output * a


def inside(x):
    """The Function sits inside: what it receives is nobody's cotangent."""
    return ScalesGradOutput.apply(x.sin()).square()


def inside_fixed(x):
    return ScalesGradient.apply(x.sin()).square()


# -- saved tensors ---------------------------------------------------------------------------------


class ReusesSaved(Function):
    @staticmethod
    def forward(ctx, x):
        y = x.sigmoid()
        ctx.save_for_backward(x, y)
        return x * y

    @staticmethod
    def backward(ctx, grad_output):
        x, y = ctx.saved_tensors
        slope = y.mul_(1 + x * (1 - y))
        return grad_output * slope


class LeavesSaved(Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * x.sigmoid()

    @staticmethod
    def backward(ctx, grad_output):
        (x,) = ctx.saved_tensors
        y = x.sigmoid()
        return grad_output * y * (1 + x * (1 - y))


class WritesSavedInput(Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x.square()

    @staticmethod
    def backward(ctx, grad_output):
        (x,) = ctx.saved_tensors
        return grad_output * x.data.mul_(2)


class ReadsSavedInput(WritesSavedInput):
    @staticmethod
    def backward(ctx, grad_output):
        (x,) = ctx.saved_tensors
        return grad_output * x * 2


class HidesOutput(Function):
    """The output is saved through ``.data``: its version is not checked."""

    @staticmethod
    def forward(ctx, x):
        y = x.tanh()
        ctx.save_for_backward(y.data)
        return y

    @staticmethod
    def backward(ctx, grad_output):
        (y,) = ctx.saved_tensors
        return grad_output * (1 - y * y)


class SavesOutput(HidesOutput):
    @staticmethod
    def forward(ctx, x):
        y = x.tanh()
        ctx.save_for_backward(y)
        return y


# -- lifetime --------------------------------------------------------------------------------------


class OutputOnCtx(Function):
    @staticmethod
    def forward(ctx, x):
        ctx.y = x.exp()
        return ctx.y

    @staticmethod
    def backward(ctx, grad_output):
        return grad_output * ctx.y


class OutputSaved(Function):
    @staticmethod
    def forward(ctx, x):
        y = x.exp()
        ctx.save_for_backward(y)
        return y

    @staticmethod
    def backward(ctx, grad_output):
        (y,) = ctx.saved_tensors
        return grad_output * y


class InputOnCtx(Function):
    @staticmethod
    def forward(ctx, x):
        ctx.x = x
        return x.sin()

    @staticmethod
    def backward(ctx, grad_output):
        return grad_output * ctx.x.cos()


class InputSaved(Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x.sin()

    @staticmethod
    def backward(ctx, grad_output):
        (x,) = ctx.saved_tensors
        return grad_output * x.cos()


class CacheOnCtx(Function):
    @staticmethod
    def forward(ctx, a, b):
        product = a * b
        ctx.cache = {"inputs": (a, b), "output": product}
        return product

    @staticmethod
    def backward(ctx, grad_output):
        a, b = ctx.cache["inputs"]
        return grad_output * b, grad_output * a


# -- replay ----------------------------------------------------------------------------------------


class ConsumesScale(Function):
    @staticmethod
    def forward(ctx, x, scale):
        ctx.save_for_backward(x)
        ctx.scale = scale
        return x.sin() * scale

    @staticmethod
    def backward(ctx, grad_output):
        (x,) = ctx.saved_tensors
        scale, ctx.scale = ctx.scale, 1.0
        return grad_output * x.cos() * scale, None


class KeepsScale(ConsumesScale):
    @staticmethod
    def backward(ctx, grad_output):
        (x,) = ctx.saved_tensors
        return grad_output * x.cos() * ctx.scale, None


class DeletesAttribute(ConsumesScale):
    @staticmethod
    def backward(ctx, grad_output):
        (x,) = ctx.saved_tensors
        scale = ctx.scale
        del ctx.scale
        return grad_output * x.cos() * scale, None


class AccumulatesInto(Function):
    """A gradient buffer made in forward, added to in every backward."""

    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x, torch.zeros_like(x))
        return x.square()

    @staticmethod
    def backward(ctx, grad_output):
        x, grad = ctx.saved_tensors
        grad.add_(2 * x * grad_output)
        return grad.clone()


class MakesBuffer(Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x.square()

    @staticmethod
    def backward(ctx, grad_output):
        (x,) = ctx.saved_tensors
        return 2 * x * grad_output


# -- determinism -----------------------------------------------------------------------------------

_CALLS = itertools.count()
_UNSEEDED = random.SystemRandom()


class EverySecondCall(Function):
    """A race between two blocks: one of them gets lost now and then."""

    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x.square()

    @staticmethod
    def backward(ctx, grad_output):
        (x,) = ctx.saved_tensors
        grad = 2 * x * grad_output
        if next(_CALLS) % 2:
            grad = torch.cat([grad[:-1], torch.zeros_like(grad[-1:])])
        return grad


class UnseededNoise(Function):
    @staticmethod
    def forward(ctx, x):
        return x + _UNSEEDED.random()

    @staticmethod
    def backward(ctx, grad_output):
        return grad_output


class SeededNoise(UnseededNoise):
    @staticmethod
    def forward(ctx, x):
        return x + torch.rand(()).item()


class Tuned(Function):
    """The first call tunes: it runs a kernel that adds to its result a second time."""

    tuned = False

    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x.square()

    @staticmethod
    def backward(ctx, grad_output):
        (x,) = ctx.saved_tensors
        grad = 2 * x * grad_output
        runs, Tuned.tuned = (1 if Tuned.tuned else 2), True
        return grad * runs


# -- memory ----------------------------------------------------------------------------------------


class SkipsTail(Function):
    """Blocks of two columns; the last, odd one is never written."""

    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x.square()

    @staticmethod
    def backward(ctx, grad_output):
        (x,) = ctx.saved_tensors
        grad = torch.empty_like(x)
        whole = x.shape[0] // 2 * 2
        grad[:whole] = (2 * x * grad_output)[:whole]
        return grad


class SkipsZeros(Function):
    """An early return where nothing is to be done."""

    @staticmethod
    def forward(ctx, x, mask):
        out = torch.empty_like(x)
        out[mask] = x[mask]
        ctx.save_for_backward(mask)
        return out

    @staticmethod
    def backward(ctx, grad_output):
        (mask,) = ctx.saved_tensors
        return grad_output * mask, None


class WritesZeros(SkipsZeros):
    @staticmethod
    def forward(ctx, x, mask):
        out = torch.zeros_like(x)
        out[mask] = x[mask]
        ctx.save_for_backward(mask)
        return out


# -- shared state ----------------------------------------------------------------------------------


class StateOnClass(Function):
    @staticmethod
    def forward(ctx, x):
        StateOnClass.slope = x.detach().cos()
        return x.sin()

    @staticmethod
    def backward(ctx, grad_output):
        return grad_output * StateOnClass.slope


class ScaleOnClass(Function):
    @staticmethod
    def forward(ctx, x, scale):
        ScaleOnClass.scale = scale
        return x * scale

    @staticmethod
    def backward(ctx, grad_output):
        return grad_output * ScaleOnClass.scale, None


class ScaleOnCtx(Function):
    @staticmethod
    def forward(ctx, x, scale):
        ctx.scale = scale
        return x * scale

    @staticmethod
    def backward(ctx, grad_output):
        return grad_output * ctx.scale, None


_BUFFERS: dict[Any, torch.Tensor] = {}


def _buffer(name: str, like: torch.Tensor) -> torch.Tensor:
    return _BUFFERS.setdefault((name, like.shape, like.dtype), torch.empty_like(like))


class SharedOutput(Function):
    """The output lies in a workspace that the next call gets too."""

    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return torch.sin(x.detach(), out=_buffer("output", x.detach())).view_as(x)

    @staticmethod
    def backward(ctx, grad_output):
        (x,) = ctx.saved_tensors
        return grad_output * x.cos()


class SharedGradient(InputSaved):
    @staticmethod
    def backward(ctx, grad_output):
        (x,) = ctx.saved_tensors
        grad = _buffer("gradient", x.detach())
        grad.copy_(grad_output * x.cos())
        return grad.detach()


class Remembers(torch.nn.Module):
    """A module that hands a tensor to its backward through itself."""

    def forward(self, x):
        module = self
        module.x = x.detach()

        class Square(Function):
            @staticmethod
            def forward(ctx, x):
                return x.square()

            @staticmethod
            def backward(ctx, grad_output):
                return 2 * module.x * grad_output

        return Square.apply(x)


class Saves(torch.nn.Module):
    def forward(self, x):
        return MakesBuffer.apply(x)


# -- checkpointing ---------------------------------------------------------------------------------


class UnpacksTwice(Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x.square()

    @staticmethod
    def backward(ctx, grad_output):
        return grad_output * ctx.saved_tensors[0] + grad_output * ctx.saved_tensors[0]


_COSINES: dict[int, torch.Tensor] = {}


class KeyedByAddress(Function):
    """What backward needs lies in a table, under the address of a saved tensor."""

    @staticmethod
    def forward(ctx, x):
        _COSINES[x.data_ptr()] = x.detach().cos()
        ctx.save_for_backward(x)
        return x.sin()

    @staticmethod
    def backward(ctx, grad_output):
        (x,) = ctx.saved_tensors
        return grad_output * _COSINES[x.data_ptr()]


class PythonMask(Function):
    """Python's generator, which checkpointing does not bring back."""

    @staticmethod
    def forward(ctx, x):
        mask = torch.tensor([random.random() > 0.5 for _ in range(x.numel())]).view_as(x)
        ctx.save_for_backward(mask)
        return x * mask

    @staticmethod
    def backward(ctx, grad_output):
        (mask,) = ctx.saved_tensors
        return grad_output * mask


class TorchMask(PythonMask):
    @staticmethod
    def forward(ctx, x):
        mask = torch.rand(x.shape) > 0.5
        ctx.save_for_backward(mask)
        return x * mask


# -- random numbers --------------------------------------------------------------------------------


class FreshMask(TorchMask):
    @staticmethod
    def backward(ctx, grad_output):
        return grad_output * (torch.rand(grad_output.shape) > 0.5)


class FreshNoise(Function):
    """The noise of forward is drawn again, from where the generator has come to."""

    @staticmethod
    def forward(ctx, x):
        return x * torch.randn(x.shape, dtype=x.dtype)

    @staticmethod
    def backward(ctx, grad_output):
        return grad_output * torch.randn(grad_output.shape, dtype=grad_output.dtype)


class SavedNoise(Function):
    @staticmethod
    def forward(ctx, x):
        noise = torch.randn(x.shape, dtype=x.dtype)
        ctx.save_for_backward(noise)
        return x * noise

    @staticmethod
    def backward(ctx, grad_output):
        (noise,) = ctx.saved_tensors
        return grad_output * noise


class RoundsAtRandom(Function):
    """Stochastic rounding of the gradient, though forward draws nothing."""

    @staticmethod
    def forward(ctx, x):
        return x * 2

    @staticmethod
    def backward(ctx, grad_output):
        keep = torch.rand(grad_output.shape) > 0.5
        return grad_output * keep * 4


class Doubles(RoundsAtRandom):
    @staticmethod
    def backward(ctx, grad_output):
        return grad_output * 2


def _bug(name: str, code: str, faulty: Any, fixed: Any, inputs: Any, like: str, *also: str) -> Bug:
    return Bug(name, code, faulty, fixed, inputs, like, also)


BUGS = [
    _bug("clamps its input", "GL601", ClampsInput, ClampsCopy, _one, "linkedin/Liger-Kernel#272"),
    _bug(
        "kernel writes to its input",
        "GL601",
        WritesThroughNumpy,
        WritesCopyThroughNumpy,
        _one,
        "unslothai/unsloth#5002",
    ),
    _bug("wraps indices in place", "GL601", WrapsIndex, WrapsIndexCopy, _with_index, "class 10"),
    _bug(
        "output is the input's memory",
        "GL601",
        ReturnsInputMemory,
        ReturnsInput,
        _one,
        "open-mmlab/mmcv#1511",
    ),
    _bug(
        "flips the mask in backward",
        "GL603",
        ClearsMaskInBackward,
        KeepsMaskInBackward,
        _with_mask,
        "class 10",
        "GL605",
    ),
    _bug("scales grad_output", "GL602", ScalesGradOutput, ScalesGradient, _one, "NVIDIA/apex#1430"),
    _bug("clips contiguous()", "GL602", ClipsContiguous, ClipsClone, _one, "NVIDIA/apex#1587"),
    _bug("out=grad_output", "GL602", FusesIntoGradient, TwoGradients, _two, "class 10"),
    _bug("scales grad_output inside", "GL602", inside, inside_fixed, _one, "class 10"),
    _bug("reuses a saved tensor", "GL603", ReusesSaved, LeavesSaved, _one, "class 10", "GL605"),
    _bug(
        "writes to its saved input",
        "GL603",
        WritesSavedInput,
        ReadsSavedInput,
        _one,
        "unslothai/unsloth#5002",
        "GL605",
    ),
    _bug("saves the output as .data", "GL603", HidesOutput, SavesOutput, _one, "class 11", "GL502"),
    _bug("output on ctx", "GL604", OutputOnCtx, OutputSaved, _one, "dmlc/dgl#1060", "GL603"),
    _bug("input on ctx", "GL604", InputOnCtx, InputSaved, _one, "asappresearch/sru#171"),
    _bug("cache on ctx", "GL604", CacheOnCtx, TwoGradients, _two, "dmlc/dgl#1060"),
    _bug("uses its scale up", "GL605", ConsumesScale, KeepsScale, _with_scale, "class 11"),
    _bug("deletes an attribute", "GL605", DeletesAttribute, KeepsScale, _with_scale, "class 11"),
    _bug(
        "adds to a gradient buffer",
        "GL605",
        AccumulatesInto,
        MakesBuffer,
        _one,
        "bitsandbytes-foundation/bitsandbytes#2034",
        "GL603",
    ),
    _bug("loses a block now and then", "GL606", EverySecondCall, MakesBuffer, _one, "class 13"),
    _bug("noise without a seed", "GL606", UnseededNoise, SeededNoise, _one, "class 13"),
    _bug("first call tunes", "GL606", Tuned, MakesBuffer, _one, "triton-lang/triton#4217"),
    _bug("tail never written", "GL607", SkipsTail, MakesBuffer, _one, "pytorch/FBGEMM#5754"),
    _bug(
        "masked output never written",
        "GL607",
        SkipsZeros,
        WritesZeros,
        _with_mask,
        "fla-org/flash-linear-attention#892",
    ),
    _bug("state on the class", "GL608", StateOnClass, InputSaved, _one, "class 11", "GL502"),
    _bug("scale on the class", "GL608", ScaleOnClass, ScaleOnCtx, _with_scale, "class 11"),
    _bug("one workspace for all outputs", "GL608", SharedOutput, InputSaved, _one, "class 15"),
    _bug("one workspace for all gradients", "GL608", SharedGradient, InputSaved, _one, "class 15"),
    _bug("state on the module", "GL608", Remembers(), Saves(), _one, "class 11", "GL502"),
    _bug(
        "unpacks twice", "GL609", UnpacksTwice, MakesBuffer, _one, "NVIDIA/TransformerEngine#1334"
    ),
    _bug("keyed by address", "GL609", KeyedByAddress, InputSaved, _one, "class 11", "GL502"),
    _bug("mask of Python's generator", "GL609", PythonMask, TorchMask, _one, "class 19"),
    _bug(
        "fresh mask in backward",
        "GL610",
        FreshMask,
        TorchMask,
        _one,
        "facebookresearch/xformers#755",
    ),
    _bug(
        "fresh noise in backward", "GL610", FreshNoise, SavedNoise, _one, "state-spaces/mamba#1023"
    ),
    _bug("gradient rounded at random", "GL610", RoundsAtRandom, Doubles, _one, "class 19", "GL401"),
]
