import torch
from torch import Tensor


class _HiRA(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x: Tensor, weight: Tensor, a: Tensor, b: Tensor, scale: float) -> Tensor:
        ctx.save_for_backward(x, weight, a, b)
        ctx.scale = scale
        return x @ (weight * (1 + scale * (b @ a))).T

    @staticmethod
    def backward(ctx, g: Tensor):
        x, weight, a, b = ctx.saved_tensors
        factor = 1 + ctx.scale * (b @ a)
        dx = g @ (weight * factor)
        dw = g.reshape(-1, g.size(-1)).T @ x.reshape(-1, x.size(-1))
        dm = dw * weight * ctx.scale
        dweight = dw * factor if ctx.needs_input_grad[1] else None
        return dx, dweight, b.T @ (dw * ctx.scale), dm @ a.T, None


def hira_linear(x: Tensor, weight: Tensor, a: Tensor, b: Tensor, scale: float = 1.0) -> Tensor:
    """Hadamard high-rank adapter: x (W * (1 + s B A))^T. x (..., I), weight (O, I), a (R, I), b (O, R)"""
    return _HiRA.apply(x, weight, a, b, scale)
