import torch
from torch.autograd.function import once_differentiable


class ThinPlate(torch.autograd.Function):
    """Sum over the control points of w_j r^2 log r.  x (n, 2), control (m, 2), w (m,)"""

    @staticmethod
    def forward(ctx, x, control, w):
        ctx.save_for_backward(x, control, w)
        r2 = (x[:, None] - control).pow(2).sum(-1)
        return 0.5 * torch.xlogy(r2, r2) @ w

    @staticmethod
    @once_differentiable
    def backward(ctx, grad):
        x, control, w = ctx.saved_tensors
        diff = x[:, None] - control
        r2 = diff.pow(2).sum(-1)
        gw = grad @ (0.5 * torch.xlogy(r2, r2))
        slope = r2.log() + 1
        d = (grad[:, None] * w * slope)[..., None] * diff
        return d.sum(1), -d.sum(0), gw
