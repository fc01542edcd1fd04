import math

import torch


class H1Relative(torch.autograd.Function):
    """Relative H^1 loss on a periodic interval of length L, in Fourier space.

    pred, target: (batch, n). Returns mean_b ||pred_b - target_b||_H1 / ||target_b||_H1.
    """

    @staticmethod
    def _symbol(x, L):
        k = torch.fft.fftfreq(x.size(-1), d=L / x.size(-1), dtype=x.dtype, device=x.device) * 2 * math.pi
        return 1 + k ** 2

    @staticmethod
    def _apply(x, w):
        return torch.fft.ifft(w * torch.fft.fft(x)).real

    @staticmethod
    def forward(ctx, pred, target, L=1.0):
        w = H1Relative._symbol(pred, L)
        err = pred - target
        num = (err * H1Relative._apply(err, w)).sum(-1).sqrt()
        den = (target * H1Relative._apply(target, w)).sum(-1).sqrt()
        ctx.save_for_backward(pred, target)
        ctx.L = L
        return (num / den).mean()

    @staticmethod
    def backward(ctx, g):
        pred, target = ctx.saved_tensors
        w = H1Relative._symbol(pred, 1.0)
        err = pred - target
        werr, wtar = H1Relative._apply(err, w), H1Relative._apply(target, w)
        num = (err * werr).sum(-1, keepdim=True).sqrt()
        den = (target * wtar).sum(-1, keepdim=True).sqrt()
        g = g / pred.size(0)
        dpred = g * werr / (num * den)
        dtarget = -dpred - g * num * wtar / den ** 3
        return dpred, dtarget, None
