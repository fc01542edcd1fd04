import torch
from torch.autograd.function import once_differentiable


class LPPool1d(torch.autograd.Function):
    """Power pooling y = (sum |x|^p)^(1/p) over windows of the last axis, p >= 1.

    A window of zeros pools to zero and passes no gradient on.
    """

    @staticmethod
    def forward(ctx, x, p=2.0, kernel=2, stride=2):
        win = x.unfold(-1, kernel, stride)
        y = win.abs().pow(p).sum(-1).pow(1.0 / p)
        ctx.save_for_backward(x, y)
        ctx.spec = (p, kernel, stride)
        return y

    @staticmethod
    @once_differentiable
    def backward(ctx, gy):
        x, y = ctx.saved_tensors
        p, kernel, stride = ctx.spec
        win = x.unfold(-1, kernel, stride)
        ratio = (win.abs() / y.unsqueeze(-1)).pow(p - 1) * win.sign()
        gwin = ratio * gy.unsqueeze(-1)
        gx = torch.zeros_like(x)
        last = (gy.shape[-1] - 1) * stride
        for k in range(kernel):
            gx[..., k:k + last + 1:stride] += gwin[..., k]
        return gx, None, None, None
