import torch


class MinimumImageDistance(torch.autograd.Function):
    """Distances of atom pairs in an orthorhombic periodic cell.

    positions (A, 3), cell (3,) edge lengths, pairs (P, 2) long -> (P,)
    Atoms at the same place have distance and gradient zero.
    """

    @staticmethod
    def forward(ctx, positions, cell, pairs):
        delta = positions[pairs[:, 1]] - positions[pairs[:, 0]]
        images = torch.round(delta / cell)
        delta = delta - images * cell
        dist = delta.norm(dim=1)
        ctx.save_for_backward(pairs, images, delta, dist)
        ctx.n_atoms = positions.shape[0]
        return dist

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx, grad_dist):
        pairs, images, delta, dist = ctx.saved_tensors
        g = (grad_dist / dist.clamp(min=1e-12)).unsqueeze(1) * delta
        grad_pos = g.new_zeros(ctx.n_atoms, 3)
        grad_pos.index_add_(0, pairs[:, 1], g)
        grad_pos.index_add_(0, pairs[:, 0], -g)
        grad_cell = -(g * images).sum(0)
        return grad_pos, grad_cell, None
