import torch


class _ARAP(torch.autograd.Function):
    @staticmethod
    def forward(ctx, deformed, rest, rotations, weights, edges):
        i, j = edges.unbind(-1)
        ctx.save_for_backward(deformed, rest, rotations, weights, edges)
        rot = (rotations[i] @ (rest[i] - rest[j])[..., None])[..., 0]
        return (weights * (deformed[i] - deformed[j] - rot).pow(2).sum(-1)).sum()

    @staticmethod
    def backward(ctx, grad):
        deformed, rest, rotations, weights, edges = ctx.saved_tensors
        i, j = edges.unbind(-1)
        q = rest[i] - rest[j]
        res = deformed[i] - deformed[j] - (rotations[i] @ q[..., None])[..., 0]
        g = 2 * grad * weights[:, None] * res
        g_def = torch.zeros_like(deformed).index_add(0, i, g).index_add(0, j, -g)
        gq = -(g[:, None, :] @ rotations[i])[:, 0]
        g_rest = torch.zeros_like(rest).index_add(0, i, gq).index_add(0, j, -gq)
        g_rot = torch.zeros_like(rotations).index_add(0, i, -g[:, :, None] * q[:, None, :])
        return g_def, g_rest, g_rot, grad * res.pow(2).sum(-1), None


def arap_energy(deformed, rest, rotations, weights, edges):
    """As-rigid-as-possible energy for fixed rotations; vertices (V, 3), rotations (V, 3, 3), weights (E,), edges (E, 2) long."""
    return _ARAP.apply(deformed, rest, rotations, weights, edges)
