import torch


class DirichletEnergy(torch.autograd.Function):
    """0.5 * sum_e w_e |x_i - x_j|^2 for an edge list (2, E); differentiable in x (N, D) and w (E,)."""

    @staticmethod
    def forward(ctx, x, w, edge_index):
        assert x.is_floating_point() and w.is_floating_point() and w.dim() == 1
        assert edge_index.shape == (2, w.shape[0])
        i, j = edge_index
        d = x[i] - x[j]
        ctx.save_for_backward(x, w, edge_index)
        return 0.5 * (w * (d * d).sum(1)).sum()

    @staticmethod
    def backward(ctx, g):
        x, w, (i, j) = ctx.saved_tensors
        d = x[i] - x[j]
        f = g * w[:, None] * d
        gx = torch.zeros_like(x)
        gx = gx.index_add(0, i, f)
        gx = gx.index_add(0, j, f, alpha=-1)
        return gx, 0.5 * g * (d * d).sum(1), None
