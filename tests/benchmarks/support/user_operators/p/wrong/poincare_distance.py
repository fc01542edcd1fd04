import torch
from torch.autograd import Function


class PoincareDistance(Function):
    """Distance in the Poincare ball, u, v: (..., D) with norms below one."""

    @staticmethod
    def forward(ctx, u, v):
        if u.shape != v.shape:
            raise ValueError("u and v differ in shape")
        squ = (u * u).sum(-1)
        sqv = (v * v).sum(-1)
        if (squ >= 1).any() or (sqv >= 1).any():
            raise ValueError("points must lie inside the unit ball")
        ctx.save_for_backward(u, v)
        sqd = ((u - v) ** 2).sum(-1)
        return torch.acosh(1 + 2 * sqd / ((1 - squ) * (1 - sqv)))

    @staticmethod
    def backward(ctx, g):
        u, v = ctx.saved_tensors
        alpha = 1 - (u * u).sum(-1, keepdim=True)
        beta = 1 - (v * v).sum(-1, keepdim=True)
        diff = u - v
        sqd = (diff * diff).sum(-1, keepdim=True)
        x = 2 * sqd / (alpha * beta)
        z = torch.sqrt((x * (x + 2)).clamp(min=1e-15))
        g = 4 * g.unsqueeze(-1) / (alpha * beta * z)
        grad_u = g * (diff + sqd / alpha * u)
        grad_v = g * (-diff + sqd / alpha * v)
        return grad_u, grad_v
