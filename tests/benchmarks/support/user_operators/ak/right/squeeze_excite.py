import torch
import torch.nn as nn


def _gate(x, w1, w2):
    s = x.mean(-1)
    h = (s @ w1.t()).relu()
    return s, h, (h @ w2.t()).sigmoid()


class _Excite(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, w1, w2):
        ctx.save_for_backward(x, w1, w2)
        s, h, gate = _gate(x, w1, w2)
        return x * gate[..., None]

    @staticmethod
    def backward(ctx, g):
        x, w1, w2 = ctx.saved_tensors
        s, h, gate = _gate(x, w1, w2)
        gz = (g * x).sum(-1) * gate * (1 - gate)
        gh = (gz @ w2) * (h > 0)
        gs = gh @ w1 / x.shape[-1]
        return g * gate[..., None] + gs[..., None], gh.t() @ s, gz.t() @ h


class SqueezeExcite(nn.Module):
    def __init__(self, channels, reduced):
        super().__init__()
        self.w1 = nn.Parameter(torch.randn(reduced, channels) / channels ** 0.5)
        self.w2 = nn.Parameter(torch.randn(channels, reduced) / reduced ** 0.5)

    def forward(self, x):
        return _Excite.apply(x, self.w1, self.w2)
