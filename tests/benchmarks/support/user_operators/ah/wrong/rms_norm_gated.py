import torch
import torch.nn as nn
import torch.nn.functional as F


class RMSNormGatedFn(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, weight, z=None, eps=1e-6, group_size=None, norm_before_gate=True):
        ctx.save_for_backward(x, weight, z)
        ctx.eps, ctx.norm_before_gate = eps, norm_before_gate
        ctx.group_size = x.shape[-1] if group_size is None else group_size
        u = x if z is None or norm_before_gate else x * F.silu(z)
        y = u * _rstd(u, ctx.group_size, eps) * weight
        return y * F.silu(z) if z is not None and norm_before_gate else y

    @staticmethod
    def backward(ctx, dy):
        x, weight, z = ctx.saved_tensors
        before = ctx.norm_before_gate
        u = x if z is None or before else x * F.silu(z)
        rstd = _rstd(u, ctx.group_size, ctx.eps)
        xhat = u * rstd
        dz = None
        if z is not None:
            sig = torch.sigmoid(z)
            dsilu = sig * (1 + z * (1 - sig))
            if before:
                dz = dy * xhat * weight * dsilu
                dy = dy * z * sig
        dweight = (dy * xhat).flatten(0, -2).sum(0)
        wdy = dy * weight
        dx = rstd * (wdy - xhat * _group_mean(wdy * xhat, x.shape[-1]))
        if z is not None and not before:
            dz = dx * x * dsilu
            dx = dx * z * sig
        return dx, dweight, dz, None, None, None


def _group_mean(t, group_size):
    g = t.unflatten(-1, (-1, group_size))
    return g.mean(-1, keepdim=True).expand_as(g).flatten(-2)


def _rstd(t, group_size, eps):
    return torch.rsqrt(_group_mean(t * t, group_size) + eps)


class RMSNormGated(nn.Module):
    def __init__(self, hidden_size, eps=1e-5, group_size=None, norm_before_gate=True):
        """If group_size is not None, we do RMSNorm with each group having group_size elements.
        group_size=None is equivalent to group_size=hidden_size (i.e. there's only 1 group).
        """
        super().__init__()
        if group_size is not None and hidden_size % group_size:
            raise ValueError("hidden_size must be a multiple of group_size")
        self.eps = eps
        self.weight = nn.Parameter(torch.ones(hidden_size))
        self.group_size = group_size
        self.norm_before_gate = norm_before_gate

    def forward(self, x, z=None):
        """If z is not None, we do norm(x) * silu(z) if norm_before_gate, else norm(x * silu(z))"""
        assert x.dim() >= 2
        return RMSNormGatedFn.apply(x, self.weight, z, self.eps, self.group_size, self.norm_before_gate)
