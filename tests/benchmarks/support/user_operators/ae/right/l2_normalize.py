import torch


class L2Normalize(torch.autograd.Function):
    """x / max(||x||, eps) along ``dim``"""

    @staticmethod
    def forward(ctx, x, dim=-1, eps=1e-12):
        norm = x.norm(dim=dim, keepdim=True)
        ctx.save_for_backward(x)
        ctx.dim, ctx.eps = dim, eps
        return x / norm.clamp(min=eps)

    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        norm = x.norm(dim=ctx.dim, keepdim=True)
        clamped = norm.clamp(min=ctx.eps)
        y = x / clamped
        radial = y * (g * y).sum(ctx.dim, keepdim=True)
        radial = torch.where(norm > ctx.eps, radial, torch.zeros_like(radial))
        return (g - radial) / clamped, None, None
