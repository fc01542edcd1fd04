import torch
import torch.nn as nn


class _GF(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, s, t):
        B, G = s.shape
        ctx.save_for_backward(x, s)
        y = x.reshape(B, G, -1) * (1 + s[..., None]) + t[..., None]
        return y.reshape(x.shape)

    @staticmethod
    def backward(ctx, g):
        x, s = ctx.saved_tensors
        B, G = s.shape
        gg = g.reshape(B, G, -1)
        gx = gg * (1 + s[..., None])
        return gx.reshape(x.shape), (gg * x.reshape(B, G, -1)).sum(2), gg.sum(2)


class GFiLM(nn.Module):
    def __init__(self, cond, groups):
        super().__init__()
        self.fc = nn.Linear(cond, 2 * groups)

    def forward(self, x, z):
        s, t = self.fc(z).chunk(2, 1)
        return _GF.apply(x, s, t)
