import torch
from torch import nn


class GINEFunction(torch.autograd.Function):

    @staticmethod
    def forward(ctx, x, edge_attr, eps, edge_index):
        src, dst = edge_index
        pre = x[src] + edge_attr
        ctx.save_for_backward(x, eps, edge_index, pre > 0)
        return ((1 + eps) * x).index_add(0, dst, pre.relu())

    @staticmethod
    def backward(ctx, g):
        x, eps, (src, dst), on = ctx.saved_tensors
        ge = g[dst] * on
        gx = gs = None
        if ctx.needs_input_grad[0]:
            gx = ((1 + eps) * g).index_add(0, dst, ge)
        if ctx.needs_input_grad[2]:
            gs = (g * x).sum().reshape(eps.shape)
        return gx, ge, gs, None


class GINEAggregate(nn.Module):
    """(1 + eps) x_i + sum_j relu(x_j + e_ji).   x: (N, C), edge_attr: (E, C), edge_index: (2, E)"""

    def __init__(self, eps=0.0, nn_=None):
        super().__init__()
        self.nn = nn_ or nn.Identity()
        self.eps = nn.Parameter(torch.tensor([eps]))

    def forward(self, x, edge_attr, edge_index):
        return self.nn(GINEFunction.apply(x, edge_attr, self.eps, edge_index))
