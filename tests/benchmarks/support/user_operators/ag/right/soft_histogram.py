import torch
import torch.nn as nn
from torch.autograd import Function
from torch.autograd.function import once_differentiable


class SoftHistFunction(Function):
    @staticmethod
    def forward(ctx, x, centers, width, mask):
        z = (x.unsqueeze(-1) - centers) / width
        k = torch.exp(-0.5 * z * z)
        if mask is not None:
            k = k * mask.unsqueeze(-1).to(k.dtype)
        ctx.save_for_backward(k, width)
        ctx.z = z
        return k.sum(1)

    @staticmethod
    @once_differentiable
    def backward(ctx, g):
        k, width = ctx.saved_tensors
        z = ctx.z
        flow = g.unsqueeze(1) * k * z
        gx = -flow.sum(-1) / width
        gc = flow.sum((0, 1)) / width
        gw = (flow * z).sum() / width
        return gx, gc, gw.reshape(width.shape), None


class SoftHistogram(nn.Module):
    """Gaussian soft histogram, x (B, N) -> (B, bins); mask (B, N) bool leaves values out."""

    def __init__(self, bins, low=-1.0, high=1.0, normalize=False):
        super().__init__()
        self.centers = nn.Parameter(torch.linspace(low, high, bins))
        self.log_width = nn.Parameter(torch.tensor((high - low) / bins).log())
        self.normalize = normalize

    def forward(self, x, mask=None):
        h = SoftHistFunction.apply(x, self.centers, self.log_width.exp(), mask)
        if self.normalize:
            h = h / h.sum(-1, keepdim=True).clamp(min=1e-9)
        return h
