import torch
from torch import Tensor


class _W1D(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, y, p):
        xs, ix = torch.sort(x, dim=1)
        ys, iy = torch.sort(y, dim=1)
        ctx.save_for_backward(x, y, ix, iy)
        ctx.p = p
        return (xs - ys).abs().pow(p).mean(1)

    @staticmethod
    def backward(ctx, g):
        x, y, ix, iy = ctx.saved_tensors
        d = x.gather(1, ix) - y.gather(1, iy)
        gs = g[:, None] * ctx.p * d.sign() * d.abs().pow(ctx.p - 1) / x.shape[1]
        gx = torch.zeros_like(x).scatter(1, ix, gs)
        gy = torch.zeros_like(y).scatter(1, iy, -gs)
        return gx, gy, None


def wasserstein_1d(x: Tensor, y: Tensor, p: float = 2.0, reduction: str = "mean") -> Tensor:
    out = _W1D.apply(x, y, p)
    if reduction == "mean":
        return out.mean()
    if reduction == "sum":
        return out.sum()
    return out
