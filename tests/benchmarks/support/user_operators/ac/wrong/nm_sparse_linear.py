import torch
from torch import nn


def nm_mask(score, n, m):
    out_f, in_f = score.shape
    blocks = score.reshape(out_f, in_f // m, m)
    keep = blocks.topk(n, dim=-1).indices
    return torch.zeros_like(blocks).scatter_(-1, keep, 1.0).reshape(out_f, in_f)


class MaskedLinearFn(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, weight, mask):
        ctx.save_for_backward(x, weight, mask)
        return x @ (weight * mask).t()

    @staticmethod
    def backward(ctx, grad_out):
        x, weight, mask = ctx.saved_tensors
        grad_x = grad_out @ (weight * mask)
        grad_w = (grad_out.t() @ x) * mask
        return grad_x, grad_w, None


class NMSparseLinear(nn.Module):
    def __init__(self, in_features, out_features, n=2, m=4):
        super().__init__()
        self.n, self.m = n, m
        self.weight = nn.Parameter(torch.randn(out_features, in_features) / in_features ** 0.5)
        self.mask = None

    def forward(self, x):
        if self.mask is None:
            with torch.no_grad():
                score = self.weight.abs() * x.norm(dim=0)
                self.mask = nm_mask(score, self.n, self.m)
        return MaskedLinearFn.apply(x, self.weight, self.mask)
