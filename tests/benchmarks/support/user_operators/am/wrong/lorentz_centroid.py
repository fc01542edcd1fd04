import torch
from torch.autograd import Function


class LorentzCentroid(Function):
    """Weighted centroids on the hyperboloid <x, x> = -1 / k, time coordinate first.

    x (N, D + 1), w (M, N) >= 0, k positive scalar -> (M, D + 1)
    """

    @staticmethod
    def metric(c):
        return torch.cat([-c[:, :1], c[:, 1:]], 1)

    @staticmethod
    def forward(ctx, x, w, k, eps=1e-12):
        ctx.save_for_backward(x, w, k)
        ctx.eps = eps
        c = w @ x
        s = -(c * LorentzCentroid.metric(c)).sum(1, keepdim=True)
        return c / (k * s.clamp(min=eps)).sqrt()

    @staticmethod
    def backward(ctx, grad):
        x, w, k = ctx.saved_tensors
        c = w @ x
        flat = LorentzCentroid.metric(c)
        s = -(c * flat).sum(1, keepdim=True)
        live = s > ctx.eps
        s = s.clamp(min=ctx.eps)
        f = 1 / (k * s).sqrt()
        along = (grad * c).sum(1, keepdim=True) * f
        gc = f * grad + live * along / s * c
        gk = -along.sum() / (2 * k)
        return w.t() @ gc, gc @ x.t(), gk, None
