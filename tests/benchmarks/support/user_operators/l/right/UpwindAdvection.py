import torch
import torch.nn as nn
from torch.autograd.function import once_differentiable


class _UpwindStep(torch.autograd.Function):
    """u <- u - ratio * (c+ (u_i - u_{i-1}) + c- (u_{i+1} - u_i)), in place, periodic."""

    @staticmethod
    def forward(ctx, u, c, ratio):
        left = u - u.roll(1, -1)
        right = u.roll(-1, -1) - u
        ctx.save_for_backward(c, left, right)
        ctx.ratio = ratio
        u.sub_(ratio * (c.clamp(min=0) * left + c.clamp(max=0) * right))
        ctx.mark_dirty(u)
        return u

    @staticmethod
    @once_differentiable
    def backward(ctx, g):
        c, left, right = ctx.saved_tensors
        r = ctx.ratio
        pos = c.clamp(min=0) * g
        neg = c.clamp(max=0) * g
        gu = g - r * (pos - pos.roll(-1, -1) + neg.roll(1, -1) - neg)
        gc = -r * g * torch.where(c > 0, left, right)
        if gc.dim() > 1:
            gc = gc.sum(tuple(range(gc.dim() - 1)))
        return gu, gc, None


class UpwindAdvection(nn.Module):
    """First-order upwind transport on a periodic grid with a learned velocity per cell.

    u: (..., cells) -> (..., cells) after ``steps`` steps of dt / dx = ratio
    """

    def __init__(self, cells, steps=1, ratio=0.5):
        super().__init__()
        self.velocity = nn.Parameter(0.1 * torch.randn(cells))
        self.steps = steps
        self.ratio = ratio

    def forward(self, u):
        u = u.clone()
        for _ in range(self.steps):
            u = _UpwindStep.apply(u, self.velocity, self.ratio)
        return u

    def extra_repr(self):
        return f"cells={self.velocity.numel()}, steps={self.steps}, ratio={self.ratio}"
