import torch
from torch.autograd.function import once_differentiable


class RayComposite(torch.autograd.Function):
    """sigma (R, S), rgb (R, S, 3), delta (R, S) non-diff, background (3,)
    -> colour (R, 3), opacity (R,)"""

    @staticmethod
    def forward(ctx, sigma, rgb, delta, background):
        tau = torch.cumsum(sigma * delta, 1)
        after = torch.exp(-tau)
        before = torch.cat([torch.ones_like(after[:, :1]), after[:, :-1]], 1)
        w = before - after
        ctx.save_for_backward(rgb, delta, background, after, w)
        col = (w[..., None] * rgb).sum(1) + after[:, -1:] * background
        return col, 1 - after[:, -1]

    @staticmethod
    @once_differentiable
    def backward(ctx, gc, ga):
        rgb, delta, background, after, w = ctx.saved_tensors
        end = after[:, -1:]
        proj = (gc[:, None] * rgb).sum(-1)
        wp = w * proj
        behind = wp.sum(1, keepdim=True) - wp.cumsum(1)
        d_tau = after * proj - behind
        d_tau = d_tau - end * (gc @ background)[:, None]
        d_tau = d_tau + end * ga[:, None]
        return d_tau * delta, w[..., None] * gc[:, None], None, (end * gc).sum(0)
