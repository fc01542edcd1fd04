import torch
import torch.nn as nn


class _FRN(torch.autograd.Function):

    @staticmethod
    def forward(ctx, x, weight, bias, tau, eps):
        ctx.save_for_backward(x, weight, bias, tau, eps)
        rs = torch.rsqrt(x.pow(2).mean((2, 3), keepdim=True) + eps.abs())
        return torch.maximum(weight * x * rs + bias, tau)

    @staticmethod
    def backward(ctx, grad):
        x, weight, bias, tau, eps = ctx.saved_tensors
        rs = torch.rsqrt(x.pow(2).mean((2, 3), keepdim=True) + eps.abs())
        xn = x * rs
        live = weight * xn + bias > tau
        gz = grad * live
        gtau = (grad * ~live).sum((0, 2, 3), keepdim=True)
        gweight = (gz * xn).sum((0, 2, 3), keepdim=True)
        gbias = gz.sum((0, 2, 3), keepdim=True)
        gn = gz * weight
        gx = rs * (gn - xn * (gn * xn).mean((2, 3), keepdim=True))
        geps = -0.5 * rs ** 3 * (gn * x).sum((2, 3), keepdim=True)
        geps = geps.sum((0, 2, 3), keepdim=True)
        return gx, gweight, gbias, gtau, geps


class FRN(nn.Module):
    """Filter response normalization with the thresholded linear unit behind it; eps is learned
    (its absolute value is used)."""

    def __init__(self, num_features, eps=1e-6):
        super().__init__()
        shape = (1, num_features, 1, 1)
        self.weight = nn.Parameter(torch.ones(shape))
        self.bias = nn.Parameter(torch.zeros(shape))
        self.tau = nn.Parameter(torch.zeros(shape))
        self.eps = nn.Parameter(torch.full(shape, eps))

    def forward(self, x):
        return _FRN.apply(x, self.weight, self.bias, self.tau, self.eps)
