"""Mean and deviation over time with lengths, as in x-vectors."""
import torch
from torch import nn
from torch.autograd.function import once_differentiable


class _Stats(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, mask, count, unbiased):
        mean = (x * mask).sum(-1) / count
        dev = (x - mean.unsqueeze(-1)) * mask
        dof = (count - 1).clamp(min=1) if unbiased else count
        std = (dev.square().sum(-1) / dof).sqrt()
        ctx.save_for_backward(dev, std, mask, count, dof)
        return mean, std

    @staticmethod
    @once_differentiable
    def backward(ctx, g_mean, g_std):
        dev, std, mask, count, dof = ctx.saved_tensors
        per_frame = g_std / (dof * std)
        gx = (g_mean / count).unsqueeze(-1) * mask + per_frame.unsqueeze(-1) * dev
        return gx, None, None, None


class StatsPooling(nn.Module):
    """x (B, C, T), lengths (B,) or None -> (B, 2C).

    Channels without variance (padding, one frame, dead units) have zero deviation and take
    no gradient from it.
    """

    def __init__(self, channels, unbiased=True, affine=False):
        super().__init__()
        self.unbiased = unbiased
        self.scale = nn.Parameter(torch.ones(2 * channels)) if affine else None

    def forward(self, x, lengths=None):
        b, _, t = x.shape
        if lengths is None:
            lengths = torch.full((b,), t, device=x.device)
        mask = (torch.arange(t, device=x.device) < lengths[:, None]).to(x.dtype).unsqueeze(1)
        out = torch.cat(_Stats.apply(x, mask, lengths.to(x.dtype).unsqueeze(1), self.unbiased), 1)
        return out if self.scale is None else out * self.scale
