import torch
from torch.autograd.function import once_differentiable


class ProjectL2Ball(torch.autograd.Function):
    """Projection of the vectors along dim on the ball of the given radius."""

    @staticmethod
    def forward(ctx, x, radius=1.0, dim=-1):
        norm = x.norm(dim=dim, keepdim=True)
        scale = radius / norm.clamp(min=radius)
        ctx.save_for_backward(x, norm)
        ctx.radius, ctx.dim = radius, dim
        return x * scale

    @staticmethod
    @once_differentiable
    def backward(ctx, grad):
        x, norm = ctx.saved_tensors
        outside = (norm > ctx.radius).to(grad.dtype)
        unit = x / norm
        tangential = grad - unit * (unit * grad).sum(ctx.dim, keepdim=True)
        projected = tangential * (ctx.radius / norm.clamp(min=ctx.radius))
        return outside * projected + (1 - outside) * grad, None, None
