"""Additive-noise proxy for uniform quantisation (Balle et al., 2017; Defossez et al., 2021)."""
import torch
from torch import Tensor
from torch.autograd import Function


class ChannelNoiseQuant(Function):
    """clamp(x + step * noise, -step * qmax, step * qmax), one step per channel.

    Args:
        x: any shape
        step: (C,) positive, C the size of axis `dim`
        noise: same shape as x, usually uniform in [-0.5, 0.5]
        qmax: number of levels on each side
        dim: channel axis, may be negative
    """

    @staticmethod
    def forward(ctx, x: Tensor, step: Tensor, noise: Tensor, qmax: int = 7, dim: int = 1) -> Tensor:
        if step.dim() != 1 or step.numel() != x.size(dim):
            raise ValueError("step must have one entry per channel")
        shape = [1] * x.dim()
        shape[dim] = -1
        s = step.view(shape)
        ctx.save_for_backward(x, step, noise)
        ctx.qmax, ctx.dim = qmax, dim
        return torch.minimum(torch.maximum(x + s * noise, -s * qmax), s * qmax)

    @staticmethod
    def backward(ctx, grad: Tensor):
        x, step, noise = ctx.saved_tensors
        dim = ctx.dim % x.dim()
        shape = [1] * x.dim()
        shape[dim] = -1
        s = step.view(shape)
        v = x + s * noise
        high, low = v > s * ctx.qmax, v < -s * ctx.qmax
        inner = grad.masked_fill(high | low, 0.0)
        per = inner * noise + grad * ctx.qmax * (high.to(grad.dtype) - low.to(grad.dtype))
        axes = [a for a in range(x.dim()) if a != dim]
        g_step = per.sum(axes) if axes else per
        return inner, g_step, inner * s, None, None
