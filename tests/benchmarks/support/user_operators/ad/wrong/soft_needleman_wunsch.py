import torch
from torch.autograd.function import once_differentiable


class SoftNW(torch.autograd.Function):
    """Smoothed global alignment score.

    sim (n, m): similarity of residue i of the query and j of the target
    gap (): linear gap penalty, positive;  temp: temperature of the soft maximum
    """

    @staticmethod
    def forward(ctx, sim, gap, temp=1.0):
        n, m = sim.shape
        F = sim.new_zeros(n + 1, m + 1)
        F[:, 0] = -gap * torch.arange(n + 1, dtype=sim.dtype)
        F[0, :] = -gap * torch.arange(m + 1, dtype=sim.dtype)
        W = sim.new_zeros(n + 1, m + 1, 3)
        for i in range(1, n + 1):
            for j in range(1, m + 1):
                cand = torch.stack([F[i - 1, j - 1] + sim[i - 1, j - 1], F[i - 1, j] - gap, F[i, j - 1] - gap])
                F[i, j] = temp * torch.logsumexp(cand / temp, 0)
                W[i, j] = torch.softmax(cand / temp, 0)
        ctx.save_for_backward(W)
        return F[n, m].clone()

    @staticmethod
    @once_differentiable
    def backward(ctx, grad_score):
        W, = ctx.saved_tensors
        n, m = W.shape[0] - 1, W.shape[1] - 1
        E = W.new_zeros(n + 1, m + 1)
        E[n, m] = grad_score
        g_sim = W.new_zeros(n, m)
        g_gap = W.new_zeros(())
        for i in range(n, 0, -1):
            for j in range(m, 0, -1):
                diag, up, left = E[i, j] * W[i, j]
                g_sim[i - 1, j - 1] = diag
                g_gap -= up + left
                E[i - 1, j - 1] += diag
                E[i - 1, j] += up
                E[i, j - 1] += left
        return g_sim, g_gap, None
