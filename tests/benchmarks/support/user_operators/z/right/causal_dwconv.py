import torch
import torch.nn.functional as F


class CausalDepthwiseConv(torch.autograd.Function):
    """Depthwise 1-d convolution that only looks back.

    x (B, C, T), w (C, K) with w[:, -1] on the present sample, bias (C,) or None
    """

    @staticmethod
    def forward(ctx, x, w, bias=None, dilation=1, stride=1):
        K = w.shape[1]
        pad = (K - 1) * dilation
        xp = F.pad(x, (pad, 0))
        n = (x.shape[-1] - 1) // stride + 1
        y = 0
        for k in range(K):
            y = y + w[:, k, None] * xp[..., k * dilation :: stride][..., :n]
        if bias is not None:
            y = y + bias.unsqueeze(-1)
        ctx.save_for_backward(x, w)
        ctx.dilation, ctx.stride, ctx.has_bias = dilation, stride, bias is not None
        return y

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx, g):
        x, w = ctx.saved_tensors
        K, d, s = w.shape[1], ctx.dilation, ctx.stride
        pad, n = (K - 1) * d, g.shape[-1]
        xp = F.pad(x, (pad, 0))
        gxp, gw = torch.zeros_like(xp), torch.zeros_like(w)
        for k in range(K):
            gxp[..., k * d :: s][..., :n] += w[:, k, None] * g
            gw[:, k] = (g * xp[..., k * d :: s][..., :n]).sum((0, 2))
        gb = g.sum((0, 2)) if ctx.has_bias else None
        return gxp[..., pad:], gw, gb, None, None
