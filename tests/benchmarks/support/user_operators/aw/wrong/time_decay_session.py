import torch
import torch.nn.functional as F
from torch import nn


class _DecayPool(torch.autograd.Function):
    @staticmethod
    def forward(ctx, emb, age, rate, lengths):
        ctx.save_for_backward(emb, age, rate, lengths)
        keep = torch.arange(age.size(1), device=age.device) < lengths[:, None]
        w = torch.exp(-rate * age) * keep
        return torch.einsum("bt,btd->bd", w, emb) / w.sum(1, keepdim=True)

    @staticmethod
    def backward(ctx, grad):
        emb, age, rate, lengths = ctx.saved_tensors
        keep = torch.arange(age.size(1), device=age.device) < lengths[:, None]
        w = torch.exp(-rate * age) * keep
        total = w.sum(1, keepdim=True)
        out = torch.einsum("bt,btd->bd", w, emb) / total
        grad /= total
        g_emb = w.unsqueeze(-1) * grad.unsqueeze(1)
        g_exponent = (g_emb * (emb - out.unsqueeze(1))).sum(-1)
        return g_emb, -rate * g_exponent, -(age * g_exponent).sum(), None


class TimeDecaySession(nn.Module):
    """Session vector, recent clicks count more.

    emb (B, T, D), age (B, T) hours since the click, lengths (B,) long, at least 1 -> (B, D)
    """

    def __init__(self):
        super().__init__()
        self.raw_rate = nn.Parameter(torch.zeros(()))

    def forward(self, emb, age, lengths):
        return _DecayPool.apply(emb, age, F.softplus(self.raw_rate), lengths)
