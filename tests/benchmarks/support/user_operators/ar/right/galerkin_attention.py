import torch
from torch import nn


def _normalize(x, eps):
    mu = x.mean(-1, keepdim=True)
    rstd = torch.rsqrt((x - mu).square().mean(-1, keepdim=True) + eps)
    return (x - mu) * rstd, rstd


def _normalize_backward(dxh, xh, rstd):
    return rstd * (dxh - dxh.mean(-1, keepdim=True) - xh * (dxh * xh).mean(-1, keepdim=True))


class GalerkinProduct(torch.autograd.Function):
    @staticmethod
    def forward(ctx, q, k, v, k_scale, v_scale, eps):
        kn = _normalize(k, eps)[0] * k_scale[:, None]
        vn = _normalize(v, eps)[0] * v_scale[:, None]
        ctx.save_for_backward(q, k, v, k_scale, v_scale)
        ctx.eps = eps
        return q @ (kn.mT @ vn) / q.size(-2)

    @staticmethod
    def backward(ctx, g):
        q, k, v, k_scale, v_scale = ctx.saved_tensors
        kh, k_rstd = _normalize(k, ctx.eps)
        vh, v_rstd = _normalize(v, ctx.eps)
        kn, vn = kh * k_scale[:, None], vh * v_scale[:, None]
        g = g / q.size(-2)
        dq = g @ (kn.mT @ vn).mT
        dmix = q.mT @ g
        dkn, dvn = vn @ dmix.mT, kn @ dmix
        dk = _normalize_backward(dkn * k_scale[:, None], kh, k_rstd)
        dv = _normalize_backward(dvn * v_scale[:, None], vh, v_rstd)
        return dq, dk, dv, (dkn * kh).sum((0, 2)), (dvn * vh).sum((0, 2)), None


class GalerkinAttention(nn.Module):
    """Softmax-free attention with Petrov-Galerkin projection. q, k, v: (batch, heads, n, head_dim)"""

    def __init__(self, heads, head_dim, eps=1e-5):
        super().__init__()
        self.k_scale = nn.Parameter(torch.ones(heads, head_dim))
        self.v_scale = nn.Parameter(torch.ones(heads, head_dim))
        self.eps = eps

    def forward(self, q, k, v):
        return GalerkinProduct.apply(q, k, v, self.k_scale, self.v_scale, self.eps)
