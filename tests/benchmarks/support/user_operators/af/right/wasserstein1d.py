import torch
from torch.autograd.function import once_differentiable


class Wasserstein1D(torch.autograd.Function):
    """mean |sort(x) - sort(y)|^p over the last dim, for equally many samples, p >= 1"""

    @staticmethod
    def forward(ctx, x, y, p=2.0):
        xs, ix = x.sort(dim=-1)
        ys, iy = y.sort(dim=-1)
        diff = xs - ys
        ctx.save_for_backward(diff, ix, iy)
        ctx.p = p
        return diff.abs().pow(p).mean(-1)

    @staticmethod
    @once_differentiable
    def backward(ctx, grad):
        diff, ix, iy = ctx.saved_tensors
        p, n = ctx.p, diff.shape[-1]
        d = grad[..., None] * p * diff.sign() * diff.abs().pow(p - 1) / n
        gx = gy = None
        if ctx.needs_input_grad[0]:
            gx = torch.zeros_like(d).scatter_(-1, ix, d)
        if ctx.needs_input_grad[1]:
            gy = torch.zeros_like(d).scatter_(-1, iy, -d)
        return gx, gy, None
