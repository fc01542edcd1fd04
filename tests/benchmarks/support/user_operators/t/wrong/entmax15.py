import torch
from torch.autograd.function import once_differentiable


class Entmax15(torch.autograd.Function):
    @staticmethod
    def forward(ctx, X, dim=-1):
        ctx.dim = dim
        X = X.movedim(dim, -1)
        X = (X - X.amax(-1, keepdim=True)) / 2
        Xs, _ = X.sort(-1, descending=True)
        rho = torch.arange(1, X.shape[-1] + 1, device=X.device, dtype=X.dtype)
        mean = Xs.cumsum(-1) / rho
        mean_sq = (Xs**2).cumsum(-1) / rho
        delta = (1 - rho * (mean_sq - mean**2)) / rho
        tau = mean - delta.clamp(min=0).sqrt()
        support = (tau <= Xs).sum(-1, keepdim=True)
        Y = (X - tau.gather(-1, support - 1)).clamp(min=0) ** 2
        Y = Y.movedim(-1, dim)
        ctx.save_for_backward(Y)
        return Y

    @staticmethod
    @once_differentiable
    def backward(ctx, dY):
        (Y,) = ctx.saved_tensors
        gppr = Y.sqrt()
        dX = dY * gppr
        q = dX.sum(-1, keepdim=True) / gppr.sum(-1, keepdim=True)
        return dX - q * gppr, None
