import torch
from torch.autograd import Function


class DeltaFOverF(Function):
    """dF/F of calcium traces with a trailing-minimum baseline. F (N, T) > 0 -> (N, T)"""

    @staticmethod
    def forward(ctx, F, window, eps=0.0):
        T = F.shape[1]
        offs = torch.arange(1 - window, 1, device=F.device)
        idx = (torch.arange(T, device=F.device)[:, None] + offs).clamp(min=0)
        f0, arg = F[:, idx].min(-1)
        where = idx.expand(F.shape[0], -1, -1).gather(-1, arg[..., None]).squeeze(-1)
        ctx.save_for_backward(F, where)
        ctx.eps = eps
        return (F - f0) / (f0 + eps)

    @staticmethod
    def backward(ctx, g):
        F, where = ctx.saved_tensors
        f0 = F.gather(1, where) + ctx.eps
        g0 = -g * (F + ctx.eps) / f0 ** 2
        base = torch.zeros_like(F).scatter_add(1, where, g0)
        return g / f0 + base, None, None
