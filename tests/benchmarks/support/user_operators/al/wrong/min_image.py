import torch


class _MinImage(torch.autograd.Function):
    @staticmethod
    def forward(ctx, frac, cell, pairs):
        ctx.save_for_backward(frac, cell, pairs)
        d = frac[pairs[0]] - frac[pairs[1]]
        return ((d - d.round()) @ cell).norm(dim=-1)

    @staticmethod
    def backward(ctx, grad):
        frac, cell, (i, j) = ctx.saved_tensors
        raw = frac[i] - frac[j]
        d = raw - raw.round()
        vec = d @ cell
        g = (grad / vec.norm(dim=-1).clamp_min(1e-12)).unsqueeze(-1) * vec
        g_frac = None
        if ctx.needs_input_grad[0]:
            g_d = g @ cell.t()
            g_frac = torch.zeros(frac.shape, dtype=frac.dtype, device=frac.device)
            g_frac = g_frac.index_add(0, i, g_d).index_add(0, j, -g_d)
        return g_frac, raw.t() @ g, None


def min_image_distance(frac, cell, pairs):
    """Distances (P,) under periodic boundary conditions.

    frac: (N, 3) fractional coordinates
    cell: (3, 3) lattice vectors in rows; differentiable for the stress
    pairs: (2, P) long
    """
    return _MinImage.apply(frac, cell, pairs)
