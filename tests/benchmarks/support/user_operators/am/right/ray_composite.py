import torch
from torch.autograd import Function
from torch.autograd.function import once_differentiable


class CompositeRays(Function):

    @staticmethod
    def forward(ctx, rgb, alpha, lengths, background=None):
        # rgb (R, S, C), alpha (R, S) in [0, 1], lengths (R,), background (C,) or None
        S = alpha.shape[1]
        valid = torch.arange(S, device=alpha.device)[None] < lengths[:, None]
        a = alpha * valid
        through = torch.cumprod(1 - a, 1)
        left = through[:, -1].clone()
        T = torch.cat([torch.ones_like(a[:, :1]), through[:, :-1]], 1)
        out = ((a * T)[..., None] * rgb).sum(1)
        if background is not None:
            out = out + left[:, None] * background
        ctx.save_for_backward(rgb, a, T, left, valid, background)
        return out, left

    @staticmethod
    @once_differentiable
    def backward(ctx, g_out, g_left):
        rgb, a, T, left, valid, background = ctx.saved_tensors
        g_rgb = (a * T)[..., None] * g_out[:, None]
        here = (rgb * g_out[:, None]).sum(-1)
        # what lies behind the sample, from the far end on
        behind = g_left
        g_bg = None
        if background is not None:
            behind = behind + g_out @ background
            g_bg = (left[:, None] * g_out).sum(0)
        g_alpha = torch.empty_like(a)
        for i in reversed(range(a.shape[1])):
            g_alpha[:, i] = T[:, i] * (here[:, i] - behind)
            behind = a[:, i] * here[:, i] + (1 - a[:, i]) * behind
        return g_rgb, g_alpha * valid, None, g_bg
