import torch
import torch.nn as nn


class _PCEN(torch.autograd.Function):
    @staticmethod
    def forward(ctx, E, s, alpha, delta, root, eps):
        c = lambda p: p.view(1, -1, 1)
        m = [E[..., 0]]
        for t in range(1, E.shape[-1]):
            m.append((1 - s) * m[-1] + s * E[..., t])
        M = torch.stack(m, -1)
        G = (eps + M) ** -c(alpha)
        base = E * G + c(delta)
        ctx.save_for_backward(E, s, alpha, delta, root, M, G, base)
        ctx.eps = eps
        return base ** c(root) - c(delta) ** c(root)

    @staticmethod
    def backward(ctx, grad):
        E, s, alpha, delta, root, M, G, base = ctx.saved_tensors
        c = lambda p: p.view(1, -1, 1)
        r, d = c(root), c(delta)
        g_root = (grad * (base ** r * base.log() - d ** r * d.log())).sum((0, 2))
        g_delta = -(grad * r * d ** (r - 1)).sum((0, 2))
        g_base = grad.mul_(r * base ** (r - 1))
        g_delta = g_delta + g_base.sum((0, 2))
        g_E = g_base * G
        g_alpha = -(g_base * E * G * torch.log(ctx.eps + M)).sum((0, 2))
        g_M = -c(alpha) * g_base * E * G / (ctx.eps + M)
        g_s = torch.zeros_like(s)
        lam = torch.zeros_like(g_M[..., 0])
        for t in range(E.shape[-1] - 1, 0, -1):
            lam = g_M[..., t] + (1 - s) * lam
            g_E[..., t] += s * lam
            g_s += (lam * (E[..., t] - M[..., t - 1])).sum(0)
            if t == 1:
                lam = (1 - s) * lam
                break
        g_E[..., 0] += g_M[..., 0] + lam
        return g_E, g_s, g_alpha, g_delta, g_root, None


class PCEN(nn.Module):
    """Per-channel energy normalization of a mel spectrogram (batch, mel, frames), frames >= 2."""

    def __init__(self, n_mels, s=0.04, alpha=0.96, delta=2.0, root=0.5, eps=1e-6):
        super().__init__()
        full = lambda v: nn.Parameter(torch.full((n_mels,), float(v)))
        self.s, self.alpha, self.delta, self.root = full(s), full(alpha), full(delta), full(root)
        self.eps = eps

    def forward(self, mel):
        return _PCEN.apply(mel, self.s, self.alpha, self.delta, self.root, self.eps)
