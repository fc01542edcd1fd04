import torch


class MinVarianceWeights(torch.autograd.Function):
    """w = S^-1 1 / (1' S^-1 1) with S = cov + ridge * I, cov (..., N, N)"""

    @staticmethod
    def forward(ctx, cov, ridge=0.0):
        S = cov + ridge * torch.eye(cov.size(-1), dtype=cov.dtype, device=cov.device)
        u = torch.linalg.solve(S, cov.new_ones(cov.shape[:-1]).unsqueeze(-1)).squeeze(-1)
        w = u / u.sum(-1, keepdim=True)
        ctx.save_for_backward(cov, w)
        ctx.ridge = ridge
        return w

    @staticmethod
    def backward(ctx, gw):
        cov, w = ctx.saved_tensors
        S = cov + ctx.ridge * torch.eye(cov.size(-1), dtype=cov.dtype, device=cov.device)
        centred = gw - (gw * w).sum(-1, keepdim=True)
        lam = torch.linalg.solve(S.mT, centred.unsqueeze(-1)).squeeze(-1)
        return -torch.einsum("...i,...j->...ij", w, lam), None
