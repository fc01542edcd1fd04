import torch
from torch import nn
from torch.autograd.function import once_differentiable


class _PCEN(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, alpha, delta, root, s, eps):
        m, ms = x[..., 0], []
        for t in range(x.shape[-1]):
            m = m + s * (x[..., t] - m)
            ms.append(m)
        M = torch.stack(ms, -1) + eps
        ctx.save_for_backward(x, M, alpha, delta, root)
        ctx.s = s
        a, d, r = alpha[:, None], delta[:, None], root[:, None]
        return (x * M ** -a + d) ** r - d ** r

    @staticmethod
    @once_differentiable
    def backward(ctx, g):
        x, M, alpha, delta, root = ctx.saved_tensors
        a, d, r = alpha[:, None], delta[:, None], root[:, None]
        gain = M ** -a
        base = x * gain + d
        gb = g * r * base ** (r - 1)
        over = lambda v: v.sum(-1).reshape(-1, len(alpha)).sum(0)
        g_alpha = over(-gb * x * gain * M.log())
        g_delta = over(gb - g * r * d ** (r - 1))
        g_root = over(g * (base ** r * base.log() - d ** r * d.log()))
        gM = -gb * x * a * gain / M
        gx = gb * gain
        acc = torch.zeros_like(gM[..., 0])
        for t in reversed(range(x.shape[-1])):
            acc = acc + gM[..., t]
            gx[..., t] += ctx.s * acc
            acc = (1 - ctx.s) * acc
        gx[..., 0] += acc
        return gx, g_alpha, g_delta, g_root, None, None


class PCEN(nn.Module):
    """Per channel energy normalisation of a mel spectrogram (..., F, T) of positive energies."""

    def __init__(self, n_mels, s=0.025, eps=1e-6):
        super().__init__()
        self.s, self.eps = s, eps
        self.alpha = nn.Parameter(torch.full((n_mels,), 0.98))
        self.delta = nn.Parameter(torch.full((n_mels,), 2.0))
        self.root = nn.Parameter(torch.full((n_mels,), 0.5))

    def forward(self, x):
        return _PCEN.apply(x, self.alpha, self.delta, self.root, self.s, self.eps)
