import torch


class SymNormAdjacency(torch.autograd.Function):
    """D^-1/2 (A + I) D^-1/2 for a dense non-negative adjacency matrix, row degrees."""

    @staticmethod
    def _parts(adj):
        a = adj + torch.eye(adj.shape[-1], dtype=adj.dtype, device=adj.device)
        return a, a.sum(-1).rsqrt()

    @staticmethod
    def forward(ctx, adj):
        if adj.is_complex() or adj.shape[-1] != adj.shape[-2]:
            raise ValueError("square and real")
        ctx.save_for_backward(adj)
        a, s = SymNormAdjacency._parts(adj)
        return s.unsqueeze(-1) * a * s.unsqueeze(-2)

    @staticmethod
    def backward(ctx, g):
        adj, = ctx.saved_tensors
        a, s = SymNormAdjacency._parts(adj)
        ga = g * s.unsqueeze(-1) * s.unsqueeze(-2)
        gs = (g * a * s.unsqueeze(-2)).sum(-1) + (g * a * s.unsqueeze(-1)).sum(-2)
        gdeg = -0.5 * gs * s ** 3
        return ga + gdeg.unsqueeze(-1)
