import torch
from torch.autograd.function import once_differentiable


def _frames(x, size, hop):
    n = (x.shape[-1] - size) // hop + 1
    return x.as_strided((x.shape[0], n, size), (x.shape[-1], hop, 1))


class FrameEnergyDB(torch.autograd.Function):
    """x (B, T), window (W,) -> (B, n) short-time energy in dB"""

    @staticmethod
    def forward(ctx, x, window, hop, floor=1e-8):
        xc = x.contiguous()
        fr = _frames(xc, window.numel(), hop) * window
        e = (fr * fr).sum(-1) + floor
        ctx.save_for_backward(xc, window, e)
        ctx.hop = hop
        return 10 * torch.log10(e)

    @staticmethod
    @once_differentiable
    def backward(ctx, g):
        x, window, e = ctx.saved_tensors
        W, hop = window.numel(), ctx.hop
        fr = _frames(x, W, hop)
        k = (g * 20 / (e * 2.302585092994046)).unsqueeze(-1)
        gf = k * fr * window ** 2
        gx = torch.zeros_like(x)
        for i in range(gf.shape[1]):
            gx[:, i * hop:i * hop + W] += gf[:, i]
        gw = (k * fr * fr).sum((0, 1)) * window
        return gx, gw, None, None
