import torch
from torch import Tensor


class PartialRMS(torch.autograd.Function):
    """pRMSNorm: the rms is estimated from the first p of the features.

    x (..., D), weight (D,)
    """

    @staticmethod
    def forward(ctx, x: Tensor, weight: Tensor, p: float, eps: float) -> Tensor:
        ctx.k = max(int(x.size(-1) * p), 1)
        ctx.eps = eps
        ctx.save_for_backward(x, weight)
        inv = torch.rsqrt(x[..., : ctx.k].square().mean(-1, keepdim=True) + eps)
        return x * inv * weight

    @staticmethod
    def backward(ctx, g: Tensor):
        x, weight = ctx.saved_tensors
        k = ctx.k
        head = x[..., :k]
        inv = torch.rsqrt(head.square().mean(-1, keepdim=True) + ctx.eps)
        gw = g * weight
        dx = gw * inv
        c = (gw * x).sum(-1, keepdim=True) * inv**3 / k
        dx = torch.cat([dx[..., :k] - c * head, dx[..., k:]], -1)
        dweight = (g * x * inv).reshape(-1, x.size(-1)).sum(0)
        return dx, dweight, None, None
