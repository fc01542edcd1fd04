import torch
from torch import nn


class _DepthwiseCausal(torch.autograd.Function):
    # x (B, C, K - 1 + T) with its left context, w (C, K) -> (B, C, T)
    @staticmethod
    def forward(ctx, x, w):
        k = w.size(1)
        t = x.size(2) - k + 1
        ctx.save_for_backward(x, w)
        return sum(w[:, i:i + 1] * x[:, :, i:i + t] for i in range(k))

    @staticmethod
    def backward(ctx, g):
        x, w = ctx.saved_tensors
        k, t = w.size(1), g.size(2)
        gx = 0
        gw = []
        for i in range(k):
            gx = gx + nn.functional.pad(w[:, i:i + 1] * g, (i, k - 1 - i))
            gw.append((g * x[:, :, i:i + t]).sum((0, 2)))
        return gx, torch.stack(gw, 1)


class StreamingConv(nn.Module):
    """Depthwise causal convolution for chunked decoding: (y, new_context) = conv(x, context)."""

    def __init__(self, channels, kernel=4, bias=True, activation=None):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(channels, kernel) / kernel)
        self.bias = nn.Parameter(torch.zeros(channels, 1)) if bias else None
        assert activation in (None, "silu")
        self.activation = activation

    def forward(self, x, context=None):
        k = self.weight.size(1)
        if context is None:
            context = x.new_zeros(x.size(0), x.size(1), k - 1)
        x = torch.cat([context, x], 2)
        y = _DepthwiseCausal.apply(x, self.weight)
        if self.bias is not None:
            y = y + self.bias
        if self.activation == "silu":
            y = nn.functional.silu(y)
        return y, x[:, :, x.size(2) - k + 1:]
