import torch
from torch.autograd.function import once_differentiable


def _fwht_(x):
    # in place, over the last dim
    n = x.shape[-1]
    h = 1
    while h < n:
        y = x.view(*x.shape[:-1], n // (2 * h), 2, h)
        a = y[..., 0, :].clone()
        b = y[..., 1, :]
        y[..., 0, :] += b
        y[..., 1, :] = a - b
        h *= 2
    return x


class HadamardTransform(torch.autograd.Function):
    """Fast Walsh-Hadamard transform over the last dim, whose size is a power of two."""

    @staticmethod
    def forward(ctx, u, scale: float = 1.0):
        n = u.shape[-1]
        if n & (n - 1):
            raise ValueError("the last dim must be a power of two")
        ctx.scale = scale
        return _fwht_(u.clone(memory_format=torch.contiguous_format)) * scale

    @staticmethod
    @once_differentiable
    def backward(ctx, grad):
        return _fwht_(grad.contiguous()) * ctx.scale, None
