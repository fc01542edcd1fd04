import torch
from torch import nn


class _Pact(torch.autograd.Function):
    """Quantised clipped activation; backward is that of clamping to [0, alpha]."""

    @staticmethod
    def forward(ctx, x, alpha, levels):
        ctx.save_for_backward(x, alpha)
        step = alpha / levels
        return torch.round(torch.minimum(x.clamp(min=0), alpha) / step) * step

    @staticmethod
    def backward(ctx, grad):
        x, alpha = ctx.saved_tensors
        over = x >= alpha
        inside = (x > 0) & ~over
        g_alpha = grad.masked_fill(~over, 0)
        g_alpha = g_alpha.sum([d for d in range(x.dim()) if d != 1], keepdim=True) if alpha.dim() else g_alpha.sum()
        return grad.masked_fill(~inside, 0), g_alpha, None


class PACT(nn.Module):
    """channels=None learns a single clipping level, otherwise one per channel of (B, C, ...)."""

    def __init__(self, bits=4, channels=None, alpha=6.0):
        super().__init__()
        self.levels = 2 ** bits - 1
        shape = () if channels is None else (channels,)
        self.alpha = nn.Parameter(torch.full(shape, alpha))

    def forward(self, x):
        alpha = self.alpha
        if alpha.dim():
            alpha = alpha.view(1, -1, *[1] * (x.dim() - 2))
        return _Pact.apply(x, alpha, self.levels)
