import torch
from torch import nn


def _centre(x, y, eps):
    xc = x - x.mean(-1, keepdim=True)
    yc = y - y.mean(-1, keepdim=True)
    xn = (xc.square().sum(-1, keepdim=True) + eps).sqrt()
    yn = (yc.square().sum(-1, keepdim=True) + eps).sqrt()
    return xc, yc, xn, yn, (xc * yc).sum(-1, keepdim=True) / (xn * yn)


class _Pearson(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, y, eps):
        ctx.save_for_backward(x, y)
        ctx.eps = eps
        return _centre(x, y, eps)[-1].squeeze(-1)

    @staticmethod
    def backward(ctx, grad):
        x, y = ctx.saved_tensors
        xc, yc, xn, yn, r = _centre(x, y, ctx.eps)
        g = grad.unsqueeze(-1)
        g_x = g * (yc / (xn * yn) - r * xc / xn.square())
        g_y = g * (xc / (xn * yn) - r * yc / yn.square())
        return g_x - g_x.mean(-1, keepdim=True), g_y - g_y.mean(-1, keepdim=True), None


class PearsonLoss(nn.Module):
    """1 - mean Pearson correlation along the last dimension of two equally shaped tensors."""

    def __init__(self, eps=1e-8):
        super().__init__()
        self.eps = eps

    def forward(self, prediction, target):
        if prediction.shape != target.shape:
            raise ValueError("prediction and target must have one shape")
        return 1 - _Pearson.apply(prediction, target, self.eps).mean()
