import torch
from torch import Tensor
from torch.autograd.function import once_differentiable


def _radius(n: int, like: Tensor) -> Tensor:
    r = torch.linspace(-1, 1, n, dtype=like.dtype, device=like.device)
    return (1 - r * r).clamp(min=0).sqrt()


@torch.library.custom_op("dsp_af::kaiser_apply", mutates_args=())
def kaiser_apply(frames: Tensor, beta: Tensor) -> Tensor:
    """frames (..., n) times a symmetric Kaiser window with the shape beta (scalar tensor)"""
    s = _radius(frames.shape[-1], frames)
    return frames * (torch.special.i0(beta * s) / torch.special.i0(beta))


def _setup(ctx, inputs, output):
    frames, beta = inputs
    ctx.save_for_backward(frames, beta)


@once_differentiable
def _backward(ctx, grad):
    frames, beta = ctx.saved_tensors
    s = _radius(frames.shape[-1], frames)
    i0 = torch.special.i0(beta)
    window = torch.special.i0(beta * s) / i0
    slope = s * torch.special.i1(beta * s) / i0
    return grad * window, (grad * frames * slope).sum()


kaiser_apply.register_autograd(_backward, setup_context=_setup)
