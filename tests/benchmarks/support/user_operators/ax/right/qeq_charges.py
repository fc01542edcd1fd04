import torch


def _system(hardness, coulomb):
    n = hardness.shape[0]
    top = torch.cat([coulomb + torch.diag(hardness), hardness.new_ones(n, 1)], 1)
    last = torch.cat([hardness.new_ones(1, n), hardness.new_zeros(1, 1)], 1)
    return torch.cat([top, last])


class QEqCharges(torch.autograd.Function):
    """Charge equilibration: minimises ``chi @ q + q @ (diag(hardness) + coulomb) @ q / 2`` at a given total charge.

    Args:
        chi: electronegativities ``(n,)``.
        hardness: ``(n,)``, positive.
        coulomb: ``(n, n)``, symmetric with zero diagonal, such that the energy is convex.
        total: total charge, 0-dim.
    """

    @staticmethod
    def forward(ctx, chi, hardness, coulomb, total):
        q = torch.linalg.solve(_system(hardness, coulomb), torch.cat([-chi, total[None]]))[:-1]
        ctx.save_for_backward(hardness, coulomb, q)
        return q

    @staticmethod
    def backward(ctx, grad):
        hardness, coulomb, q = ctx.saved_tensors
        adj = torch.linalg.solve(_system(hardness, coulomb).T, torch.cat([grad, grad.new_zeros(1)]))
        lam = adj[:-1]
        g_mat = -lam[:, None] * q[None, :]
        return -lam, g_mat.diagonal(), g_mat, adj[-1]
