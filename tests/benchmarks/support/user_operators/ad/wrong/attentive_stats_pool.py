import torch
from torch import nn
import torch.nn.functional as F


class WeightedStats(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, w, eps):
        mean = (w * x).sum(2)
        var = (w * x * x).sum(2) - mean ** 2
        std = var.clamp(min=eps).sqrt()
        ctx.save_for_backward(x, w, mean, var, std)
        ctx.eps = eps
        ctx.set_materialize_grads(False)
        return mean, std

    @staticmethod
    def backward(ctx, g_mean, g_std):
        if g_mean is None and g_std is None:
            return None, None, None
        x, w, mean, var, std = ctx.saved_tensors
        if g_mean is None:
            g_mean = torch.zeros_like(mean)
        if g_std is None:
            g_std = torch.zeros_like(std)
        g_var = g_std / (2 * std)
        g_var = g_var.masked_fill(var < ctx.eps, 0.0)
        g_mu = g_mean.unsqueeze(2)
        g_var = g_var.unsqueeze(2)
        gx = w * g_mu + 2 * w * x * g_var
        gw = x * g_mu + x * x * g_var
        return gx, gw, None


class AttentiveStatsPool(nn.Module):
    """x-vector pooling: attention weighted mean and standard deviation over frames.

    input (B, C, T), optional lengths (B,) in frames; output (B, 2C)
    """

    def __init__(self, channels: int, bottleneck: int = 2, eps: float = 1e-6):
        super().__init__()
        self.down = nn.Conv1d(channels, bottleneck, 1)
        self.up = nn.Conv1d(bottleneck, channels, 1)
        self.eps = eps

    def forward(self, x, lengths=None):
        a = self.up(torch.tanh(self.down(x)))
        if lengths is not None:
            pad = torch.arange(x.shape[2]).view(1, 1, -1) >= lengths.view(-1, 1, 1)
            a = a.masked_fill(pad, float("-inf"))
        w = F.softmax(a, dim=2)
        return torch.cat(WeightedStats.apply(x, w, self.eps), dim=1)
