import torch
from torch.autograd import Function


class DeepHitRank(Function):
    @staticmethod
    def forward(ctx, pmf, idx, rank_mat, sigma=0.1):
        # pmf: (n, durations), idx: (n,) event index, rank_mat[i, j]: i had its event before j (constant)
        ctx.save_for_backward(pmf, idx, rank_mat)
        ctx.sigma = sigma
        at = pmf.cumsum(1)[:, idx]            # at[j, i] = F_j(t_i)
        r = at.diagonal() - at                # r[j, i]
        return (rank_mat.t() * torch.exp(-r / sigma)).mean()

    @staticmethod
    def backward(ctx, grad_output):
        pmf, idx, rank_mat = ctx.saved_tensors
        at = pmf.cumsum(1)[:, idx]
        r = at.diagonal() - at
        e = torch.exp(-r / ctx.sigma)
        g_r = -grad_output * rank_mat.t() * e / ctx.sigma / e.numel()
        g_at = torch.diag(g_r.sum(1)) - g_r
        g_cdf = torch.zeros_like(pmf).index_add(1, idx, g_at)
        grad_pmf = g_cdf.flip(1).cumsum(1).flip(1)
        return grad_pmf, None, None, None
