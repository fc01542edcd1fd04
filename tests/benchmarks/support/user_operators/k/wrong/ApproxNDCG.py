"""ApproxNDCG (Qin, Liu and Li, 2010)."""
import math

import torch
from torch import nn
from torch.autograd import Function
from torch.autograd.function import once_differentiable


class _ApproxDCG(Function):
    @staticmethod
    def forward(ctx, scores, gains, tau):
        diff = (scores.unsqueeze(-2) - scores.unsqueeze(-1)) / tau  # [i, j] = s_j - s_i
        sig = torch.sigmoid(diff)
        rank = 0.5 + sig.sum(-1)
        ctx.tau = tau
        ctx.save_for_backward(sig, rank, gains)
        return (gains * math.log(2.0) / torch.log1p(rank)).sum(-1)

    @staticmethod
    @once_differentiable
    def backward(ctx, grad):
        sig, rank, gains = ctx.saved_tensors
        w = -gains * math.log(2.0) / (torch.log1p(rank) ** 2 * (1 + rank))
        slope = sig * (1 - sig) / ctx.tau
        gs = -w * slope.sum(-1)
        return grad.unsqueeze(-1) * gs, None, None


class ApproxNDCG(nn.Module):
    """1 - mean approximate NDCG.

    Args:
        temperature: of the sigmoid that counts the items ahead, > 0

    forward(scores, relevance): both (..., L); relevance non-negative, with a positive entry
    in every list, taken as a constant.
    """

    def __init__(self, temperature=0.1):
        super().__init__()
        if temperature <= 0:
            raise ValueError("temperature must be positive")
        self.temperature = temperature

    def forward(self, scores, relevance):
        gains = torch.pow(2.0, relevance.detach()).to(scores.dtype) - 1
        place = torch.arange(1, scores.size(-1) + 1, device=scores.device, dtype=scores.dtype)
        ideal = (gains.sort(-1, descending=True)[0] / torch.log2(1 + place)).sum(-1)
        dcg = _ApproxDCG.apply(scores, gains, self.temperature)
        return 1 - (dcg / ideal).mean()
