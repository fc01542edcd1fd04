import torch


class L2Normalize(torch.autograd.Function):
    """x / max(|x|, eps) along the last axis."""

    @staticmethod
    def forward(ctx, x, eps):
        n = x.norm(dim=-1, keepdim=True)
        ctx.save_for_backward(x)
        ctx.eps = eps
        return x / n.clamp(min=eps)

    @staticmethod
    def backward(ctx, g):
        x, = ctx.saved_tensors
        sq = (x * x).sum(-1, keepdim=True)
        big = sq > ctx.eps**2
        n = torch.where(big, sq, torch.ones_like(sq)).sqrt()
        y = x / n
        return torch.where(big, (g - y * (g * y).sum(-1, keepdim=True)) / n, g / ctx.eps), None
