import torch
from torch import Tensor, nn


class _FIRE(torch.autograd.Function):
    @staticmethod
    def forward(ctx, c, threshold, w1, b1, w2, length):
        pos = torch.arange(length, dtype=c.dtype, device=c.device)
        dist = (pos[:, None] - pos[None, :]).clamp(min=0)
        span = torch.maximum(pos, threshold)[:, None]
        x = torch.log1p(c * dist) / torch.log1p(c * span)
        ctx.save_for_backward(c, threshold, w1, b1, w2)
        ctx.length = length
        hidden = (x[..., None] * w1 + b1).clamp(min=0)
        return (hidden @ w2).permute(2, 0, 1)

    @staticmethod
    def backward(ctx, grad):
        c, threshold, w1, b1, w2 = ctx.saved_tensors
        pos = torch.arange(ctx.length, dtype=c.dtype, device=c.device)
        dist = (pos[:, None] - pos[None, :]).clamp(min=0)
        short = (pos < threshold)[:, None]
        span = torch.maximum(pos, threshold)[:, None]
        norm = torch.log1p(c * span)
        x = torch.log1p(c * dist) / norm
        pre = x[..., None] * w1 + b1
        g = grad.permute(1, 2, 0)
        g_w2 = torch.einsum("ijk,ijh->kh", pre.clamp(min=0), g)
        g_pre = (g @ w2.t()) * (pre > 0)
        g_x = (g_pre * w1).sum(-1)
        g_norm = -g_x * x / norm
        g_c = (g_x / norm * dist / (1 + c * dist) + g_norm * span / (1 + c * span)).sum()
        g_threshold = (g_norm * c / (1 + c * span)).sum()
        return g_c, g_threshold, (g_pre * x[..., None]).sum((0, 1)), g_pre.sum((0, 1)), g_w2, None


class FIREBias(nn.Module):
    """Attention bias of functional interpolation for relative positions (FIRE).

    Args:
        heads: number of heads.
        width: width of the hidden layer.
        threshold: initial length below which positions are normalised alike.

    forward(length) -> (heads, length, length).
    """

    def __init__(self, heads: int, width: int = 32, threshold: float = 512.0) -> None:
        super().__init__()
        if threshold <= 0:
            raise ValueError("threshold must be positive")
        self.c = nn.Parameter(torch.tensor(0.1))
        self.threshold = nn.Parameter(torch.tensor(threshold))
        self.w1 = nn.Parameter(torch.randn(width))
        self.b1 = nn.Parameter(torch.zeros(width))
        self.w2 = nn.Parameter(torch.randn(width, heads) / width**0.5)

    def forward(self, length: int) -> Tensor:
        return _FIRE.apply(self.c, self.threshold, self.w1, self.b1, self.w2, length)
