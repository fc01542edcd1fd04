import torch
import torch.nn.functional as F

TAPS = (0.25, 0.5, 0.25)


class BlurPool1d(torch.autograd.Function):

    @staticmethod
    def forward(ctx, x):
        ctx.length = x.shape[-1]
        padded = F.pad(x, (1, 1), mode="reflect")
        return sum(w * padded[..., k:k + ctx.length:2] for k, w in enumerate(TAPS))

    @staticmethod
    def backward(ctx, g):
        n = ctx.length
        padded = g.new_zeros(g.shape[:-1] + (n + 2,))
        for k, w in enumerate(TAPS):
            padded[..., k:k + n:2] += w * g
        gx = padded[..., 1:-1].clone()
        gx[..., 0] += padded[..., 0]
        gx[..., -1] += padded[..., -1]
        return gx
