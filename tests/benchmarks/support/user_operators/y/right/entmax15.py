import torch
from torch.autograd.function import once_differentiable


def _threshold(x, dim):
    xs = x.sort(dim=dim, descending=True).values
    n = x.size(dim)
    shape = [1] * x.dim()
    shape[dim] = n
    rho = torch.arange(1, n + 1, device=x.device, dtype=x.dtype).view(shape)
    mean = xs.cumsum(dim) / rho
    mean_sq = (xs**2).cumsum(dim) / rho
    delta = (1 - rho * (mean_sq - mean**2)) / rho
    tau = mean - delta.clamp(min=0).sqrt()
    k = (tau <= xs).sum(dim=dim, keepdim=True)
    return tau.gather(dim, k - 1)


class Entmax15Function(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, dim=-1):
        ctx.dim = dim
        x = (x - x.amax(dim=dim, keepdim=True)) / 2
        y = (x - _threshold(x, dim)).clamp(min=0) ** 2
        ctx.save_for_backward(y)
        return y

    @staticmethod
    @once_differentiable
    def backward(ctx, dy):
        y, = ctx.saved_tensors
        s = y.sqrt()
        dx = dy * s
        q = dx.sum(ctx.dim, keepdim=True) / s.sum(ctx.dim, keepdim=True)
        return dx - q * s, None
