import torch
import torch.nn as nn
from torch import Tensor


def _normed(v: Tensor, eps: float) -> tuple[Tensor, Tensor]:
    c = v - v.mean(-1, keepdim=True)
    inv = torch.rsqrt(c.square().mean(-1, keepdim=True) + eps)
    return c * inv, inv


class _SGU(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x: Tensor, weight: Tensor, bias: Tensor, eps: float) -> Tensor:
        ctx.save_for_backward(x, weight, bias)
        ctx.eps = eps
        u, v = x.chunk(2, -1)
        return u * (weight @ _normed(v, eps)[0] + bias[:, None])

    @staticmethod
    def backward(ctx, g: Tensor):
        x, weight, bias = ctx.saved_tensors
        u, v = x.chunk(2, -1)
        vn, inv = _normed(v, ctx.eps)
        du = g * (weight @ vn + bias[:, None])
        dm = g * u
        dweight = torch.einsum("bid,bjd->ij", dm, vn)
        dvn = weight.T @ dm
        dv = inv * (dvn - dvn.mean(-1, keepdim=True) - vn * (dvn * vn).mean(-1, keepdim=True))
        return torch.cat([du, dv], -1), dweight, dm.sum((0, 2)), None


class SpatialGatingUnit(nn.Module):
    """gMLP gate: u * (W norm(v) + b) over the token axis. x (B, N, 2E) -> (B, N, E)"""

    def __init__(self, n: int, eps: float = 1e-5) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.zeros(n, n))
        self.bias = nn.Parameter(torch.ones(n))
        self.eps = eps

    def forward(self, x: Tensor) -> Tensor:
        return _SGU.apply(x, self.weight, self.bias, self.eps)
