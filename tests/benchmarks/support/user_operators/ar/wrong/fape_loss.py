from typing import Optional

import torch
from torch import Tensor


class FAPE(torch.autograd.Function):
    """Clamped frame-aligned point error.

    rot (F,3,3), trans (F,3), points (N,3), target_local (F,N,3): the true points in the true frames,
    pair_mask (F,N) or None.
    """

    @staticmethod
    def forward(ctx, rot: Tensor, trans: Tensor, points: Tensor, target_local: Tensor,
                pair_mask: Optional[Tensor] = None, d_clamp: float = 10.0, length_scale: float = 10.0, eps: float = 1e-4):
        if pair_mask is None:
            pair_mask = torch.ones(target_local.shape[:2], dtype=points.dtype, device=points.device)
        ctx.save_for_backward(rot, trans, points, target_local, pair_mask)
        ctx.cfg = (d_clamp, length_scale, eps)
        local = torch.einsum("fji,fnj->fni", rot, points[None] - trans[:, None])
        d = ((local - target_local).square().sum(-1) + eps).sqrt().clamp(max=d_clamp)
        return (d * pair_mask).sum() / pair_mask.sum() / length_scale

    @staticmethod
    def backward(ctx, grad):
        rot, trans, points, target_local, pair_mask = ctx.saved_tensors
        d_clamp, length_scale, eps = ctx.cfg
        rel = points[None] - trans[:, None]
        diff = torch.einsum("fji,fnj->fni", rot, rel) - target_local
        d = (diff.square().sum(-1, keepdim=True) + eps).sqrt()
        coef = grad * pair_mask / pair_mask.sum() / length_scale
        g = coef[..., None] * diff / d * (d < d_clamp)
        g_rot = torch.einsum("fnj,fni->fji", rel, g)
        g_rel = torch.einsum("fij,fni->fnj", rot, g)
        return g_rot, -g_rel.sum(1), g_rel.sum(0), -g, None, None, None, None
