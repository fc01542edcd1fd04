import torch
import torch.nn as nn
from torch import Tensor

DIMS = ((2, 3), (1, 2, 3), (0, 2, 3))


def _mixed(x: Tensor, logits: Tensor, power: int):
    lam = logits.softmax(0)
    parts = [x.mean(d, keepdim=True) if power == 1 else x.var(d, unbiased=False, keepdim=True) for d in DIMS]
    return sum(l * p for l, p in zip(lam, parts)), parts, lam


def _sum_to(t: Tensor, shape: torch.Size) -> Tensor:
    dims = [i for i, (a, b) in enumerate(zip(t.shape, shape)) if b == 1 and a != 1]
    return t.sum(dims, keepdim=True) if dims else t


class _SwitchNorm(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x: Tensor, mean_logits: Tensor, var_logits: Tensor, weight: Tensor, bias: Tensor, eps: float):
        ctx.eps = eps
        ctx.save_for_backward(x, mean_logits, var_logits, weight)
        mu = _mixed(x, mean_logits, 1)[0]
        var = _mixed(x, var_logits, 2)[0]
        return (x - mu) * torch.rsqrt(var + eps) * weight[:, None, None] + bias[:, None, None]

    @staticmethod
    def backward(ctx, g: Tensor):
        x, mean_logits, var_logits, weight = ctx.saved_tensors
        mu, means, lam_m = _mixed(x, mean_logits, 1)
        var, variances, lam_v = _mixed(x, var_logits, 2)
        inv = torch.rsqrt(var + ctx.eps)
        xc = x - mu
        d = g * weight[:, None, None]
        dmu = -(d * inv).sum((2, 3), keepdim=True)
        dvar = -0.5 * (d * xc * inv**3).sum((2, 3), keepdim=True)
        dx = d * inv
        for a, (m, dims) in enumerate(zip(means, DIMS)):
            count = x.numel() // m.numel()
            dx = dx + lam_m[a] * _sum_to(dmu, m.shape) / count
            dx = dx + lam_v[a] * _sum_to(dvar, m.shape) * 2 * (x - m) / count
        dlm = torch.stack([(dmu * m).sum() for m in means])
        dlv = torch.stack([(dvar * v).sum() for v in variances])
        dlm = lam_m * (dlm - (lam_m * dlm).sum())
        dlv = lam_m * (dlv - (lam_m * dlv).sum())
        return dx, dlm, dlv, (g * xc * inv).sum((0, 2, 3)), g.sum((0, 2, 3)), None


class SwitchableNorm2d(nn.Module):
    """Mixes instance, layer and batch statistics with learned weights. x (B, C, H, W)"""

    def __init__(self, channels: int, eps: float = 1e-5) -> None:
        super().__init__()
        self.mean_logits = nn.Parameter(torch.zeros(3))
        self.var_logits = nn.Parameter(torch.zeros(3))
        self.weight = nn.Parameter(torch.ones(channels))
        self.bias = nn.Parameter(torch.zeros(channels))
        self.eps = eps

    def forward(self, x: Tensor) -> Tensor:
        return _SwitchNorm.apply(x, self.mean_logits, self.var_logits, self.weight, self.bias, self.eps)
