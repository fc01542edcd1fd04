import math

import torch
from torch import nn
from torch.autograd.function import once_differentiable


def _unit(x, eps=1e-12):
    n = x.norm(dim=-1, keepdim=True).clamp(min=eps)
    return x / n, n


class _CosineAttention(torch.autograd.Function):
    """softmax(exp(min(tau, max_tau)) cos(q, k) + bias) v

    q, k, v: (B, H, T, D); tau: (H, 1, 1); bias: (H, T, T) or None
    """

    @staticmethod
    def forward(ctx, q, k, v, tau, bias, max_tau):
        qn, q_norm = _unit(q)
        kn, k_norm = _unit(k)
        scale = tau.clamp(max=max_tau).exp()
        cos = qn @ kn.transpose(-2, -1)
        logits = cos * scale
        if bias is not None:
            logits = logits + bias
        p = logits.softmax(-1)
        ctx.save_for_backward(qn, q_norm, kn, k_norm, v, tau, scale, cos, p)
        ctx.max_tau, ctx.has_bias = max_tau, bias is not None
        return p @ v

    @staticmethod
    @once_differentiable
    def backward(ctx, g):
        qn, q_norm, kn, k_norm, v, tau, scale, cos, p = ctx.saved_tensors
        gv = p.transpose(-2, -1) @ g
        gp = g @ v.transpose(-2, -1)
        gl = p * (gp - (gp * p).sum(-1, keepdim=True))
        gbias = gl.sum(0) if ctx.has_bias else None
        gtau = (gl * cos).sum((0, 2, 3)).view_as(tau) * scale
        gtau = gtau * (tau <= ctx.max_tau)
        gcos = gl * scale
        gqn, gkn = gcos @ kn, gcos.transpose(-2, -1) @ qn
        gq = (gqn - qn * (gqn * qn).sum(-1, keepdim=True)) / q_norm
        gk = (gkn - kn * (gkn * kn).sum(-1, keepdim=True)) / k_norm
        return gq, gk, gv, gtau, gbias, None


class CosineAttention(nn.Module):
    """Scaled cosine attention of Swin V2 with a learned temperature for every head."""

    def __init__(self, num_heads, window=None, max_scale=100.0):
        super().__init__()
        self.logit_scale = nn.Parameter(torch.full((num_heads, 1, 1), math.log(10.0)))
        self.bias = nn.Parameter(torch.zeros(num_heads, window, window)) if window else None
        self.max_tau = math.log(max_scale)

    def forward(self, q, k, v):
        return _CosineAttention.apply(q, k, v, self.logit_scale, self.bias, self.max_tau)
