import torch
import torch.nn as nn
from torch.autograd import Function


def mask_2_4(w):
    """keeps the two entries of largest magnitude of every four along the rows"""
    out, inp = w.shape
    groups = w.abs().view(out, inp // 4, 4)
    keep = groups.topk(2, dim=-1).indices
    mask = torch.zeros_like(groups).scatter_(-1, keep, 1.0)
    return mask.view(out, inp)


class _SparseMM(Function):
    @staticmethod
    def forward(ctx, x, w):
        mask = mask_2_4(w)
        ctx.save_for_backward(x, w, mask)
        return x @ (w * mask).t()

    @staticmethod
    def backward(ctx, grad):
        x, w, mask = ctx.saved_tensors
        gx = gw = None
        if ctx.needs_input_grad[0]:
            gx = grad @ w
        if ctx.needs_input_grad[1]:
            gw = (grad.reshape(-1, w.size(0)).t() @ x.reshape(-1, w.size(1))) * mask
        return gx, gw


class Sparse24Linear(nn.Module):
    # hard 2:4 pruning, no straight-through: pruned weights get no gradient
    def __init__(self, in_features, out_features, bias=True):
        super().__init__()
        assert in_features % 4 == 0
        self.weight = nn.Parameter(torch.randn(out_features, in_features) / in_features ** 0.5)
        self.bias = nn.Parameter(torch.zeros(out_features)) if bias else None

    def forward(self, x):
        y = _SparseMM.apply(x, self.weight)
        if self.bias is not None:
            y = y + self.bias
        return y
