import math

import torch
from torch.autograd import Function

_K = 10.0 / math.log(10.0)


class MCDLoss(Function):
    """Mel-cepstral distortion in dB over the valid frames, c0 left out.

    x, y: (B, T, D) mel-cepstra; lengths: (B,) long
    """

    @staticmethod
    def forward(ctx, x, y, lengths, eps=1e-8):
        ctx.save_for_backward(x, y, lengths)
        ctx.eps = eps
        d = x[..., 1:] - y[..., 1:]
        mask = torch.arange(x.size(1), device=x.device) < lengths[:, None]
        per_frame = _K * torch.sqrt(2 * d.pow(2).sum(-1) + eps)
        return per_frame.masked_fill(~mask, 0).sum() / lengths.sum()

    @staticmethod
    def backward(ctx, grad_output):
        x, y, lengths = ctx.saved_tensors
        d = x[..., 1:] - y[..., 1:]
        mask = torch.arange(x.size(1), device=x.device)[None] < lengths[:, None]
        scale = _K * 2 / torch.sqrt(2 * d.pow(2).sum(-1, keepdim=True) + ctx.eps)
        g = (scale * d).masked_fill(~mask[..., None], 0) * (grad_output / lengths.sum())
        g = torch.cat([torch.zeros_like(g[..., :1]), g], -1)
        return g, -g, None, None
