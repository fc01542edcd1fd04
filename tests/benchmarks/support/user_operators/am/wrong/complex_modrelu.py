import torch
from torch.autograd import Function


class ModReLU(Function):
    """relu(|z| + bias) * z / |z| for complex z (B, C, ...), real bias (C,)"""

    @staticmethod
    def forward(ctx, z, bias, eps=1e-12):
        ctx.save_for_backward(z, bias)
        ctx.eps = eps
        b = bias.reshape(-1, *[1] * (z.dim() - 2))
        mag = z.abs().clamp(min=eps)
        return z * ((mag + b).clamp(min=0) / mag)

    @staticmethod
    def backward(ctx, g):
        z, bias = ctx.saved_tensors
        b = bias.reshape(-1, *[1] * (z.dim() - 2))
        mag = z.abs().clamp(min=ctx.eps)
        on = mag + b > 0
        along = (z.conj() * g).real
        gz = on * g * (1 + b / mag)
        gb = on * along / mag
        return gz, gb.sum([d for d in range(z.dim()) if d != 1]), None
