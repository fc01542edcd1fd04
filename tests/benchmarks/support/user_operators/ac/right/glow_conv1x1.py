import torch
import torch.nn as nn
import torch.nn.functional as F


class Inv1x1Fn(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, weight):
        ctx.save_for_backward(x, weight)
        h, w = x.shape[2:]
        logdet = h * w * torch.linalg.slogdet(weight)[1]
        return F.conv2d(x, weight[:, :, None, None]), logdet.expand(x.shape[0]).clone()

    @staticmethod
    def backward(ctx, gy, gld):
        x, weight = ctx.saved_tensors
        h, w = x.shape[2:]
        gx = torch.einsum('oi,bohw->bihw', weight, gy)
        gw = torch.einsum('bohw,bihw->oi', gy, x)
        gw = gw + gld.sum() * h * w * torch.linalg.inv(weight).t()
        return gx, gw


class InvertibleConv1x1(nn.Module):
    """Glow's 1x1 convolution; returns (y, logdet + log|det W| * H * W)."""

    def __init__(self, num_channels, init="orthogonal"):
        super().__init__()
        w = torch.randn(num_channels, num_channels)
        if init == "orthogonal":
            w = torch.linalg.qr(w)[0]
        self.weight = nn.Parameter(w.contiguous())

    def forward(self, x, logdet=None):
        y, ld = Inv1x1Fn.apply(x, self.weight)
        return y, ld if logdet is None else logdet + ld
