import torch
from torch import nn


class _WeightedFusion(torch.autograd.Function):
    @staticmethod
    def forward(ctx, w, eps, *feats):
        ctx.eps = eps
        ctx.save_for_backward(w, *feats)
        a = torch.relu(w)
        a = a / (a.sum() + eps)
        return sum(ai * f for ai, f in zip(a, feats))

    @staticmethod
    def backward(ctx, grad):
        w, *feats = ctx.saved_tensors
        r = torch.relu(w)
        total = r.sum() + ctx.eps
        a = r / total
        inner = torch.stack([(grad * f).sum() for f in feats])
        gw = (inner - (inner * a).sum()) / total * (w > 0)
        return (gw, *(ai * grad for ai in a))


class FastFusion(nn.Module):
    def __init__(self, n_inputs, eps=1e-4):
        super().__init__()
        self.w = nn.Parameter(torch.ones(n_inputs))
        self.eps = eps

    def forward(self, feats):
        return _WeightedFusion.apply(self.w, self.eps, *feats)
