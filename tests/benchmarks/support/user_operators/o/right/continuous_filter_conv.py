import torch
from torch import nn


class _FilteredMessages(torch.autograd.Function):

    @staticmethod
    def forward(ctx, x, filters, src, dst):
        ctx.save_for_backward(x, filters, src, dst)
        return torch.zeros_like(x).index_add(0, dst, x[src] * filters)

    @staticmethod
    def backward(ctx, grad):
        x, filters, src, dst = ctx.saved_tensors
        picked = grad[dst]
        g_x = torch.zeros_like(x).index_add(0, src, picked * filters)
        g_filter = picked * x[src]
        return g_x, g_filter, None, None


class CFConv(nn.Module):
    """Continuous-filter convolution: nodes (N, F), edge features (E, R), edge_index (2, E) as (source, target)."""

    def __init__(self, hidden, num_rbf):
        super().__init__()
        self.filter_net = nn.Sequential(nn.Linear(num_rbf, hidden), nn.Softplus(), nn.Linear(hidden, hidden))

    def forward(self, x, edge_attr, edge_index):
        src, dst = edge_index
        return _FilteredMessages.apply(x, self.filter_net(edge_attr), src, dst)
