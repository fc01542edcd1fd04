import torch
from torch import Tensor


def _region_mean(v: Tensor, idx: Tensor, regions: int) -> Tensor:
    zero = v.new_zeros(*v.shape[:2], regions)
    n = zero.scatter_add(2, idx, torch.ones_like(v)).clamp(min=1)
    return zero.scatter_add(2, idx, v) / n


def _normalise(x: Tensor, idx: Tensor, regions: int, eps: float) -> tuple[Tensor, Tensor]:
    c = x - _region_mean(x, idx, regions).gather(2, idx)
    inv = torch.rsqrt(_region_mean(c * c, idx, regions) + eps).gather(2, idx)
    return c * inv, inv


class RegionNorm(torch.autograd.Function):
    """Normalises each channel inside each region. x (B, C, P), labels (B, P) in [0, regions)"""

    @staticmethod
    def forward(ctx, x: Tensor, labels: Tensor, regions: int, eps: float) -> Tensor:
        ctx.regions, ctx.eps = regions, eps
        idx = labels.unsqueeze(1).expand_as(x)
        y, inv = _normalise(x, idx, regions, eps)
        ctx.save_for_backward(y, inv, labels)
        return y

    @staticmethod
    def backward(ctx, g: Tensor):
        y, inv, labels = ctx.saved_tensors
        idx = labels.unsqueeze(1).expand_as(g)
        gm = _region_mean(g, idx, ctx.regions).gather(2, idx)
        gy = _region_mean(g * y, idx, ctx.regions).gather(2, idx)
        return inv * (g - gm - y * gy), None, None, None
