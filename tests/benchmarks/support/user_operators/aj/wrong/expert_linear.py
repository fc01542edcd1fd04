import torch
import torch.nn as nn


class GroupedGemm(torch.autograd.Function):
    """x (N, D) sorted by expert, counts list of E ints, weight (E, O, D), bias (E, O) -> (N, O)"""

    @staticmethod
    def forward(ctx, x, counts, weight, bias):
        ctx.save_for_backward(x, weight)
        ctx.counts = counts
        parts = x.split(counts)
        return torch.cat([p @ w.t() + b for p, w, b in zip(parts, weight, bias)])

    @staticmethod
    def backward(ctx, g):
        x, weight = ctx.saved_tensors
        xs, gs = x.split(ctx.counts), g.split(ctx.counts)
        gx = torch.cat([q @ w for q, w in zip(gs, weight)])
        gw = torch.stack([p.t() @ q for q, p in zip(gs, xs)])
        gb = torch.stack([q.sum(0) for q in gs])
        return gx, None, gw, gb


class ExpertLinear(nn.Module):
    def __init__(self, experts, d_in, d_out):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(experts, d_out, d_in) * d_in ** -0.5)
        self.bias = nn.Parameter(torch.zeros(experts, d_out))

    def forward(self, x, expert):
        order = torch.argsort(expert, stable=True)
        counts = torch.bincount(expert, minlength=len(self.weight)).tolist()
        y = GroupedGemm.apply(x[order], counts, self.weight, self.bias)
        return torch.empty_like(y).index_copy(0, order, y)
