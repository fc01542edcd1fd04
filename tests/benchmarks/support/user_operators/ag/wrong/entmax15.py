import torch
from torch.autograd import Function
from torch.autograd.function import once_differentiable


def _threshold(z, dim):
    zs, _ = torch.sort(z, dim=dim, descending=True)
    n = z.size(dim)
    shape = [1] * z.dim()
    shape[dim] = -1
    rho = torch.arange(1, n + 1, device=z.device, dtype=z.dtype).view(shape)
    mean = zs.cumsum(dim) / rho
    mean_sq = (zs ** 2).cumsum(dim) / rho
    ss = rho * (mean_sq - mean ** 2)
    delta = ((1 - ss) / rho).clamp(min=0)
    tau = mean - delta.sqrt()
    support = (tau <= zs).sum(dim=dim, keepdim=True)
    return tau.gather(dim, support - 1)


class Entmax15Function(Function):
    # exact 1.5-entmax by sorting (Peters et al. 2019)

    @classmethod
    def forward(cls, ctx, X, dim=-1):
        ctx.dim = dim
        z = (X - X.max(dim=dim, keepdim=True)[0]) / 2
        Y = (z - _threshold(z, dim)).clamp(min=0) ** 2
        ctx.save_for_backward(Y)
        return Y

    @classmethod
    @once_differentiable
    def backward(cls, ctx, dY):
        Y, = ctx.saved_tensors
        gppr = Y.sqrt()
        dX = dY.mul_(gppr)
        q = dX.sum(ctx.dim, keepdim=True) / gppr.sum(ctx.dim, keepdim=True)
        dX -= q * gppr
        return dX, None
