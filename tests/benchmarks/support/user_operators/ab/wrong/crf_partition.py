from typing import Optional

import torch
from torch import Tensor, nn
from torch.autograd.function import once_differentiable


class _LogZ(torch.autograd.Function):
    @staticmethod
    def forward(ctx, emit, trans, start, end, mask):
        alpha = emit[:, 0] + start
        alphas = [alpha]
        for t in range(1, emit.shape[1]):
            new = torch.logsumexp(alpha[:, :, None] + trans, 1) + emit[:, t]
            alpha = torch.where(mask[:, t, None], new, alpha)
            alphas.append(alpha)
        ctx.save_for_backward(trans, end, mask, torch.stack(alphas, 1))
        return torch.logsumexp(alpha + end, 1)

    @staticmethod
    @once_differentiable
    def backward(ctx, g):
        trans, end, mask, alphas = ctx.saved_tensors
        d = g[:, None] * (alphas[:, -1] + end).softmax(1)
        g_end = d.sum(0)
        g_trans = torch.zeros_like(trans)
        g_emit = torch.zeros_like(alphas)
        for t in range(alphas.shape[1] - 1, 0, -1):
            live = mask[:, t, None]
            on = d * live
            back = (alphas[:, t - 1, :, None] + trans).softmax(1)
            pair = back * d[:, None, :]
            g_emit[:, t] = on
            g_trans += pair.sum(0)
            d = torch.where(live, pair.sum(2), d)
        g_emit[:, 0] = d
        return g_emit, g_trans, d.sum(0), g_end, None


class CRFPartition(nn.Module):
    """log Z of a linear-chain CRF; emissions (batch, time, tags), mask (batch, time), True first."""

    def __init__(self, tags: int):
        super().__init__()
        gen = torch.Generator().manual_seed(11)
        self.trans = nn.Parameter(torch.randn(tags, tags, generator=gen))
        self.start = nn.Parameter(torch.randn(tags, generator=gen))
        self.end = nn.Parameter(torch.randn(tags, generator=gen))

    def forward(self, emissions: Tensor, mask: Optional[Tensor] = None) -> Tensor:
        if mask is None:
            mask = torch.ones(emissions.shape[:2], dtype=torch.bool, device=emissions.device)
        assert bool(mask[:, 0].all()), "the first step must not be masked"
        return _LogZ.apply(emissions, self.trans, self.start, self.end, mask)
