import torch
from torch import nn


class _SlidingMean(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, band):
        ctx.save_for_backward(band)
        return x - band @ x

    @staticmethod
    def backward(ctx, grad):
        band, = ctx.saved_tensors
        return grad - band.t() @ grad, None


class SlidingCMN(nn.Module):
    """Cepstral mean subtraction over a window of +-context frames, cut at the ends.

    x (B, T, F) -> (B, T, F); then a learned scale per coefficient.
    """

    def __init__(self, dim, context=2):
        super().__init__()
        self.context = context
        self.scale = nn.Parameter(torch.ones(dim))

    def forward(self, x):
        i = torch.arange(x.size(1), device=x.device)
        band = ((i[:, None] - i).abs() <= self.context).to(x.dtype)
        band = band / band.sum(1, keepdim=True)
        return _SlidingMean.apply(x, band) * self.scale
