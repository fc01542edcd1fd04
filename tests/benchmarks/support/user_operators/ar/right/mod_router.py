import torch
from torch import nn


class _RoutedUpdate(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, router, weight, capacity):
        score = x @ router
        idx = score.topk(capacity, dim=1).indices
        row = idx.unsqueeze(-1).expand(-1, -1, x.size(-1))
        xs = x.gather(1, row)
        gate = torch.sigmoid(score.gather(1, idx)).unsqueeze(-1)
        ctx.save_for_backward(x, router, weight, row)
        return x.scatter_add(1, row, gate * (xs @ weight.t()))

    @staticmethod
    def backward(ctx, grad):
        x, router, weight, row = ctx.saved_tensors
        xs, gs = x.gather(1, row), grad.gather(1, row)
        gate = torch.sigmoid(xs @ router).unsqueeze(-1)
        y = xs @ weight.t()
        d_logit = (gs * y).sum(-1, keepdim=True) * gate * (1 - gate)
        dy = gs * gate
        dxs = dy @ weight + d_logit * router
        d_router = (d_logit * xs).sum((0, 1))
        d_weight = torch.einsum("bko,bki->oi", dy, xs)
        return grad.scatter_add(1, row, dxs), d_router, d_weight, None


class MixtureOfDepths(nn.Module):
    """The `capacity` highest scored tokens of each sequence go through the block, the others pass by."""

    def __init__(self, dim, capacity):
        super().__init__()
        self.router = nn.Parameter(torch.randn(dim) * dim ** -0.5)
        self.weight = nn.Parameter(torch.randn(dim, dim) * dim ** -0.5)
        self.capacity = capacity

    def forward(self, x):
        return _RoutedUpdate.apply(x, self.router, self.weight, self.capacity)
