import torch
import torch.nn.functional as F
from torch import Tensor


def box(x: Tensor, radius: int) -> Tensor:
    k = 2 * radius + 1
    return F.avg_pool2d(x, k, stride=1, padding=radius) * (k * k)


@torch.library.custom_op("depthkit_lab::masked_local_mean", mutates_args=())
def masked_local_mean(x: Tensor, mask: Tensor, radius: int = 1) -> Tensor:
    """mean of the valid pixels in a square window; x (B, H, W), mask (B, H, W) bool; 0 where there are none"""
    m = mask.to(x.dtype)
    return box(x * m, radius) / box(m, radius).clamp(min=1)


@masked_local_mean.register_fake
def _(x, mask, radius=1):
    return x.new_empty(x.shape)


def setup(ctx, inputs, output):
    _, mask, ctx.radius = inputs
    ctx.save_for_backward(mask)


def backward(ctx, grad):
    m = ctx.saved_tensors[0].to(grad.dtype)
    count = box(m, ctx.radius).clamp(min=1)
    return m * box(grad, ctx.radius) / count, None, None


masked_local_mean.register_autograd(backward, setup_context=setup)
