import torch
import torch.nn as nn


class _MaskedNorm(torch.autograd.Function):

    @staticmethod
    def forward(ctx, x, lengths, weight, bias, eps):
        ctx.save_for_backward(x, lengths, weight)
        ctx.eps = eps
        xh, _, m, _ = _MaskedNorm.normalised(x, lengths, eps)
        return (xh * weight[:, None] + bias[:, None]) * m

    @staticmethod
    def normalised(x, lengths, eps):
        m = (torch.arange(x.shape[-1], device=x.device) < lengths[:, None]).unsqueeze(1).to(x.dtype)
        n = lengths.clamp(min=1).to(x.dtype).view(-1, 1, 1)
        d = (x - (x * m).sum(-1, keepdim=True) / n) * m
        rstd = ((d * d).sum(-1, keepdim=True) / n + eps).rsqrt()
        return d * rstd, rstd, m, n

    @staticmethod
    def backward(ctx, g):
        x, lengths, weight = ctx.saved_tensors
        xh, rstd, m, n = _MaskedNorm.normalised(x, lengths, ctx.eps)
        g = g * m
        gh = g * weight[:, None]
        mean_g = gh.mean(-1, keepdim=True)
        mean_gx = (gh * xh).mean(-1, keepdim=True)
        gx = rstd * m * (gh - mean_g - xh * mean_gx)
        return gx, None, (g * xh).sum((0, 2)), g.sum((0, 2)), None


class MaskedInstanceNorm1d(nn.Module):
    """Instance norm of (B, C, T) over the first ``lengths`` steps of each sequence; zeros after."""

    def __init__(self, channels, eps=1e-5):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(channels))
        self.bias = nn.Parameter(torch.zeros(channels))
        self.eps = eps

    def forward(self, x, lengths):
        return _MaskedNorm.apply(x, lengths, self.weight, self.bias, self.eps)
