import torch
from torch import nn


class _CausalDW(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, w, b, state):
        # x (B, C, T), w (C, K), state (B, C, K - 1)
        K = w.shape[1]
        T = x.shape[2]
        xp = torch.cat([state, x], 2)
        y = torch.zeros_like(x)
        for k in range(K):
            y += xp[:, :, k:k + T] * w[:, k, None]
        ctx.has_bias = b is not None
        if b is not None:
            y += b[:, None]
        ctx.save_for_backward(x, w, state)
        return y, xp[:, :, T:].clone()

    @staticmethod
    def backward(ctx, gy, gstate):
        x, w, state = ctx.saved_tensors
        K = w.shape[1]
        T = x.shape[2]
        xp = torch.cat([state, x], 2)
        gxp = torch.cat([torch.zeros_like(x), gstate], 2)
        gw = []
        for k in range(K):
            gxp = gxp + nn.functional.pad(gy * w[:, k, None], (k, K - 1 - k))
            gw.append((gy * xp[:, :, k:k + T]).sum((0, 2)))
        gb = gy.sum((0, 2)) if ctx.has_bias else None
        return gxp[:, :, K - 1:], torch.stack(gw, 1), gb, gxp[:, :, :K - 1]


class CausalDepthwiseConv(nn.Module):
    """Depthwise causal convolution for streaming: returns the outputs and the state of the next call."""

    def __init__(self, channels, kernel_size=4, bias=True):
        super().__init__()
        self.kernel_size = kernel_size
        self.weight = nn.Parameter(torch.randn(channels, kernel_size) / kernel_size)
        self.bias = nn.Parameter(torch.zeros(channels)) if bias else None

    def forward(self, x, state=None):
        if state is None:
            state = x.new_zeros(x.shape[0], x.shape[1], self.kernel_size - 1)
        return _CausalDW.apply(x, self.weight, self.bias, state)
