import torch
from torch.autograd.function import once_differentiable

IGNORE = -100


class ZLossXent(torch.autograd.Function):
    @staticmethod
    def forward(ctx, logits, target, z_coef=1e-4):
        """logits (N, V), target (N,) -> (mean loss over live tokens, lse (N,) for logging)"""
        live = target != IGNORE
        n = live.sum().clamp(min=1)
        lse = logits.logsumexp(-1)
        picked = logits.gather(-1, target.masked_fill(~live, 0)[:, None])[:, 0]
        per = lse - picked + z_coef * lse ** 2
        ctx.save_for_backward(logits, target, lse)
        ctx.z_coef = z_coef
        ctx.mark_non_differentiable(lse)
        return (per * live).sum() / n, lse

    @staticmethod
    @once_differentiable
    def backward(ctx, dloss, _):
        logits, target, lse = ctx.saved_tensors
        live = target != IGNORE
        n = live.sum().clamp(min=1)
        d = torch.exp(logits - lse[:, None])
        d = d * (1 + ctx.z_coef * lse)[:, None]
        d.scatter_add_(-1, target.masked_fill(~live, 0)[:, None], -torch.ones_like(lse)[:, None])
        d = d * live[:, None] * (dloss / n)
        return d, None, None
