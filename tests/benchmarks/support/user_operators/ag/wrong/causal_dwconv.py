import torch
import torch.nn.functional as F


class CausalDepthwiseConv(torch.autograd.Function):
    """y[b,c,t] = act(bias[c] + sum_j w[c,j] x[b,c,t-(K-1-j)*dilation])"""

    @staticmethod
    def _taps(x, K, dilation):
        T = x.size(-1)
        xp = F.pad(x, ((K - 1) * dilation, 0))
        return [xp[..., j * dilation:j * dilation + T] for j in range(K)]

    @staticmethod
    def _linear(x, w, bias, dilation):
        pre = sum(w[:, j, None] * tap for j, tap in enumerate(CausalDepthwiseConv._taps(x, w.size(1), dilation)))
        return pre if bias is None else pre + bias[:, None]

    @staticmethod
    def forward(ctx, x, w, bias=None, dilation=1, activation=None):
        assert activation in (None, "silu")
        pre = CausalDepthwiseConv._linear(x, w, bias, dilation)
        ctx.save_for_backward(x, w, bias)
        ctx.dilation, ctx.activation = dilation, activation
        return pre * torch.sigmoid(pre) if activation == "silu" else pre

    @staticmethod
    def backward(ctx, g):
        x, w, bias = ctx.saved_tensors
        K, dil = w.size(1), ctx.dilation
        if ctx.activation == "silu":
            pre = CausalDepthwiseConv._linear(x, w, bias, dil)
            s = torch.sigmoid(pre)
            g = g * s * (1 + pre * (1 - s))
        gw = torch.stack([(g * tap).sum((0, 2)) for tap in CausalDepthwiseConv._taps(x, K, dil)], 1)
        T = x.size(-1)
        gp = F.pad(g, (0, (K - 1) * dil))
        gx = torch.zeros_like(x)
        for j in range(K):
            off = (K - 1 - j) * dil
            gx = gx + w[:, j, None] * gp[..., off:off + T]
        if bias is None:
            return gx, gw
        return gx, gw, g.sum((0, 2)), None, None
