import torch
from torch.autograd.function import once_differentiable


def _hines(diag, upper, lower, rhs, parent):
    d, b = diag.clone(), rhs.clone()
    n = d.shape[-1]
    for i in range(n - 1, 0, -1):
        p = parent[i]
        f = upper[..., i] / d[..., i]
        d[..., p] -= f * lower[..., i]
        b[..., p] -= f * b[..., i]
    v = torch.empty_like(b)
    v[..., 0] = b[..., 0] / d[..., 0]
    for i in range(1, n):
        v[..., i] = (b[..., i] - lower[..., i] * v[..., parent[i]]) / d[..., i]
    return v


class HinesSolve(torch.autograd.Function):
    """Voltage update of a branched cable, one linear solve per time step.

    diag, rhs (B, n); upper[:, i] couples the row of the parent of i to column i and lower[:, i] the
    row i to the column of its parent (entry 0 unused). parent is a list, parent[i] < i, root -1.
    """

    @staticmethod
    def forward(ctx, diag, upper, lower, rhs, parent):
        v = _hines(diag, upper, lower, rhs, parent)
        ctx.save_for_backward(diag, upper, lower, v)
        ctx.parent = parent
        return v

    @staticmethod
    @once_differentiable
    def backward(ctx, gv):
        diag, upper, lower, v = ctx.saved_tensors
        parent = ctx.parent
        lam = _hines(diag, upper, lower, gv, parent)
        up = torch.tensor([max(p, 0) for p in parent])
        g_upper = -lam[..., up] * v
        g_lower = -lam * v[..., up]
        g_upper[..., 0] = 0
        g_lower[..., 0] = 0
        return -lam * v, g_upper, g_lower, lam, None
