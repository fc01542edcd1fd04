import torch
from torch.autograd.function import once_differentiable


class SoftNeedlemanWunsch(torch.autograd.Function):
    """Smoothed global alignment score with a linear gap penalty.

    sim: (B, N, M) substitution scores; gap: 0-d tensor, subtracted per gap; temp: smoothing
    """

    @staticmethod
    def forward(ctx, sim, gap, temp=1.0):
        if gap.dim() != 0:
            raise ValueError("gap must be a 0-d tensor")
        B, N, M = sim.shape
        V = [[None] * (M + 1) for _ in range(N + 1)]
        zero = sim.new_zeros(B)
        for i in range(N + 1):
            V[i][0] = zero - i * gap
        for j in range(M + 1):
            V[0][j] = zero - j * gap
        W = sim.new_zeros(B, N, M, 3)
        for i in range(1, N + 1):
            for j in range(1, M + 1):
                arms = torch.stack((V[i - 1][j - 1] + sim[:, i - 1, j - 1],
                                    V[i - 1][j] - gap, V[i][j - 1] - gap), -1)
                V[i][j] = temp * torch.logsumexp(arms / temp, -1)
                W[:, i - 1, j - 1] = (arms / temp).softmax(-1)
        ctx.save_for_backward(W)
        return V[N][M].clone()

    @staticmethod
    @once_differentiable
    def backward(ctx, grad):
        W, = ctx.saved_tensors
        B, N, M, _ = W.shape
        E = W.new_zeros(B, N + 1, M + 1)
        E[:, N, M] = grad
        g_sim = W.new_zeros(B, N, M)
        g_gap = W.new_zeros(())
        for i in range(N, 0, -1):
            for j in range(M, 0, -1):
                flow = E[:, i, j].unsqueeze(-1) * W[:, i - 1, j - 1]
                g_sim[:, i - 1, j - 1] = flow[:, 0]
                g_gap = g_gap - flow[:, 1:].sum()
                E[:, i - 1, j - 1] += flow[:, 0]
                E[:, i - 1, j] += flow[:, 1]
                E[:, i, j - 1] += flow[:, 2]
        return g_sim, g_gap, None
