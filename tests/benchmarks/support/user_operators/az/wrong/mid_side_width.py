import torch
from torch import Tensor


@torch.library.custom_op("mixbus::width", mutates_args=())
def _width(stereo: Tensor, width: Tensor) -> Tensor:
    mid = stereo.mean(1, keepdim=True)
    return mid + width[:, None, None] * (stereo - mid)


@_width.register_fake
def _(stereo, width):
    return torch.empty_like(stereo)


def _setup_context(ctx, inputs, output):
    stereo, width = inputs
    ctx.save_for_backward(stereo.to(torch.bfloat16), width)


def _backward(ctx, grad):
    stereo, width = ctx.saved_tensors
    mid_grad = grad.mean(1, keepdim=True)
    grad_stereo = mid_grad + width[:, None, None] * (grad - mid_grad)
    side = (stereo - stereo.mean(1, keepdim=True)).to(grad.dtype)
    return grad_stereo, (grad * side).sum((1, 2))


_width.register_autograd(_backward, setup_context=_setup_context)


def mid_side_width(stereo: Tensor, width: Tensor) -> Tensor:
    if stereo.dim() != 3 or stereo.size(1) != 2:
        raise ValueError(f"expected (batch, 2, time), got {tuple(stereo.shape)}")
    return torch.ops.mixbus.width(stereo, width)
