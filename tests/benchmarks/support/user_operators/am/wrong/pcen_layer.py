import torch
from torch import nn
from torch.autograd.function import once_differentiable


class PCENFunction(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, s, alpha, delta, root, eps):
        # x (B, F, T), the rest (F, 1)
        m = [x[..., 0]]
        sv = s[:, 0]
        for t in range(1, x.shape[-1]):
            m.append((1 - sv) * m[-1] + sv * x[..., t])
        base = eps + torch.stack(m, -1)
        ctx.save_for_backward(x, s, alpha, delta, root, base)
        ctx.eps = eps
        return (x * base ** -alpha + delta) ** root - delta ** root

    @staticmethod
    @once_differentiable
    def backward(ctx, g):
        x, s, alpha, delta, root, base = ctx.saved_tensors
        m = base - ctx.eps
        logb = base.log()
        pull = -alpha / base
        gain = base.pow_(-alpha)
        q = x * gain
        t = q + delta
        gq = g * root * t ** (root - 1)
        g_delta = (gq - g * root * delta ** (root - 1)).sum((0, 2))[:, None]
        g_root = (g * (t ** root * t.log() - delta ** root * delta.log())).sum((0, 2))[:, None]
        g_alpha = -(gq * q * logb).sum((0, 2))[:, None]
        gx = gq * gain
        gm = gq * q * pull
        g_s = torch.zeros_like(s)
        lam = torch.zeros_like(x[..., 0])
        sv = s[:, 0]
        for i in range(x.shape[-1] - 1, 0, -1):
            lam = gm[..., i] + (1 - sv) * lam
            gx[..., i] += sv * lam
            g_s += (lam * (x[..., i] - m[..., i - 1])).sum(0)[:, None]
            if i == 1:
                lam = (1 - sv) * lam
        gx[..., 0] += gm[..., 0] + lam
        return gx, g_s, g_alpha, g_delta, g_root, None


class PCEN(nn.Module):
    """Per-channel energy normalisation with trained constants; energies (B, bands, T) > 0"""

    def __init__(self, bands, eps=1e-6):
        super().__init__()
        self.eps = eps
        self.s = nn.Parameter(torch.full((bands, 1), -3.0))
        self.alpha = nn.Parameter(torch.full((bands, 1), 3.0))
        self.delta = nn.Parameter(torch.zeros(bands, 1))
        self.root = nn.Parameter(torch.zeros(bands, 1))

    def forward(self, x):
        return PCENFunction.apply(x, self.s.sigmoid(), self.alpha.sigmoid(), self.delta.exp(), self.root.sigmoid(), self.eps)
