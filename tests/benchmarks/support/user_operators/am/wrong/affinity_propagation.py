import torch
import torch.nn.functional as F
from torch import nn

OFFSETS = [(dy, dx) for dy in (-1, 0, 1) for dx in (-1, 0, 1) if (dy, dx) != (0, 0)]


def shifted(x, dy, dx):
    h, w = x.shape[-2:]
    return F.pad(x, (1, 1, 1, 1))[..., 1 + dy:1 + dy + h, 1 + dx:1 + dx + w]


class PropagateStep(torch.autograd.Function):
    @staticmethod
    def forward(ctx, affinity, depth, eps):
        # affinity (B, 8, H, W), depth (B, C, H, W)
        ctx.save_for_backward(affinity, depth)
        ctx.eps = eps
        k = affinity / affinity.abs().sum(1, keepdim=True).clamp(min=eps)
        out = (1 - k.sum(1, keepdim=True)) * depth
        for i, o in enumerate(OFFSETS):
            out = out + k[:, i:i + 1] * shifted(depth, *o)
        return out

    @staticmethod
    def backward(ctx, g):
        affinity, depth = ctx.saved_tensors
        total = affinity.abs().sum(1, keepdim=True)
        norm = total.clamp(min=ctx.eps)
        k = affinity / norm
        g_depth = (1 - k.sum(1, keepdim=True)) * g
        gk = []
        for i, (dy, dx) in enumerate(OFFSETS):
            gk.append((g * (shifted(depth, dy, dx) - depth)).sum(1))
            g_depth = g_depth + shifted(k[:, i:i + 1] * g, -dy, -dx)
        gk = torch.stack(gk, 1)
        inner = (gk * k).sum(1, keepdim=True) * (total > ctx.eps)
        g_aff = (gk - inner) / norm
        return g_aff, g_depth, None


class AffinityPropagation(nn.Module):
    """refine a depth map by spatial propagation with predicted affinities"""

    def __init__(self, steps=2, eps=1e-6):
        super().__init__()
        self.steps, self.eps = steps, eps

    def forward(self, affinity, depth):
        for _ in range(self.steps):
            depth = PropagateStep.apply(affinity, depth, self.eps)
        return depth
