import torch
from torch.autograd.function import once_differentiable


class CheckNodeTanh(torch.autograd.Function):
    """Sum-product check node: out_j = 2 atanh( prod_{i != j} tanh(llr_i / 2) ).

    llr (..., d), edges of one check node in the last axis. Zero llrs (punctured bits) are allowed.
    """

    @staticmethod
    def _others(t):
        one = torch.ones_like(t[..., :1])
        left = torch.cumprod(torch.cat([one, t[..., :-1]], -1), -1)
        right = torch.cumprod(torch.cat([one, t.flip(-1)[..., :-1]], -1), -1).flip(-1)
        return left * right

    @staticmethod
    def forward(ctx, llr, clip=20.0):
        x = llr.clamp(-clip, clip)
        t = torch.tanh(x / 2)
        ext = CheckNodeTanh._others(t)
        ctx.save_for_backward(llr, t, ext)
        ctx.clip = clip
        return 2 * torch.atanh(ext)

    @staticmethod
    @once_differentiable
    def backward(ctx, g):
        llr, t, ext = ctx.saved_tensors
        ge = g * 2 / (1 - ext ** 2)
        d = t.shape[-1]
        gt = torch.zeros_like(t)
        for j in range(d):
            rest = [i for i in range(d) if i != j]
            gt[..., rest] += ge[..., j:j + 1] * ext[..., j:j + 1] / t[..., rest]
        gx = gt * (1 - t ** 2) / 2
        return torch.where(llr.abs() <= ctx.clip, gx, torch.zeros_like(gx)), None
