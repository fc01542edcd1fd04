import torch
from torch import nn
from torch.autograd.function import once_differentiable


class _Stats(torch.autograd.Function):

    @staticmethod
    def forward(ctx, x, logits, lengths, floor):
        pad = torch.arange(x.shape[1], device=x.device) >= lengths[:, None]
        p = logits.masked_fill(pad, -torch.inf).softmax(1)
        mean = (p[..., None] * x).sum(1)
        var = (p[..., None] * (x - mean[:, None]) ** 2).sum(1)
        std = var.clamp(min=floor * floor).sqrt()
        ctx.save_for_backward(x, p, mean, var, std)
        ctx.floor = floor
        return mean, std

    @staticmethod
    @once_differentiable
    def backward(ctx, g_mean, g_std):
        x, p, mean, var, std = ctx.saved_tensors
        g_var = g_std / (2 * std)
        g_var = g_var * (var > ctx.floor ** 2)
        off = x - mean[:, None]
        gx = p[..., None] * (g_mean[:, None] + 2 * g_var[:, None] * off)
        gp = (g_mean[:, None] * x + g_var[:, None] * off ** 2).sum(-1)
        g_logits = p * (gp - (p * gp).sum(1, keepdim=True))
        return gx, g_logits, None, None


class AttentiveStats(nn.Module):
    """Attention weighted mean and deviation over time: (B, T, C), lengths (B,) >= 1 -> (B, 2C)"""

    def __init__(self, channels, floor=1e-4):
        super().__init__()
        self.score = nn.Linear(channels, 1)
        self.floor = floor

    def forward(self, x, lengths):
        logits = self.score(x).squeeze(-1)
        return torch.cat(_Stats.apply(x, logits, lengths, self.floor), 1)
