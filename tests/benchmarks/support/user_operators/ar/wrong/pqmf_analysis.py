import math

import torch
import torch.nn.functional as F
from torch import nn


class CosineBank(torch.autograd.Function):
    """x (B, T), proto (N,) odd length -> (B, M, T') subbands, stride M"""

    @staticmethod
    def modulation(n, m, like):
        t = torch.arange(n, dtype=like.dtype, device=like.device) - (n - 1) / 2
        k = torch.arange(m, dtype=like.dtype, device=like.device)[:, None]
        phase = torch.where(k % 2 == 0, math.pi / 4, -math.pi / 4).to(like.dtype)
        return 2 * torch.cos((2 * k + 1) * math.pi / (2 * m) * t + phase)

    @staticmethod
    def forward(ctx, x, proto, subbands):
        n = proto.numel()
        filt = CosineBank.modulation(n, subbands, proto) * proto
        xp = F.pad(x, (n // 2, n // 2))
        ctx.save_for_backward(x, proto)
        ctx.subbands = subbands
        return F.conv1d(xp[:, None], filt[:, None], stride=subbands)

    @staticmethod
    def backward(ctx, g):
        x, proto = ctx.saved_tensors
        n, m = proto.numel(), ctx.subbands
        mod = CosineBank.modulation(n, m, proto)
        filt = mod * proto
        full = F.conv_transpose1d(g, filt[:, None], stride=m)[:, 0]
        full = F.pad(full, (0, x.size(1) + 2 * (n // 2) - full.size(1)))
        windows = F.pad(x, (n // 2, n // 2)).unfold(-1, n, m)
        dfilt = torch.einsum("bmt,btn->mn", g, windows)
        return full[:, (n - 2) // 2:(n - 2) // 2 + x.size(1)], (dfilt * mod).sum(0), None


class PQMFAnalysis(nn.Module):
    """Near-perfect-reconstruction filter bank with trainable prototype."""

    def __init__(self, subbands=4, taps=62, beta=9.0):
        super().__init__()
        self.subbands = subbands
        self.prototype = nn.Parameter(torch.kaiser_window(taps + 1, periodic=False, beta=beta) / subbands)

    def forward(self, x):
        return CosineBank.apply(x, self.prototype, self.subbands)
