import torch


class CVaR(torch.autograd.Function):
    """Expected shortfall: mean of the worst (largest) floor(alpha * N) losses, at least one.  losses (N,)"""

    @staticmethod
    def forward(ctx, losses, alpha):
        k = max(int(alpha * losses.numel()), 1)
        top, idx = losses.topk(k)
        ctx.save_for_backward(idx)
        ctx.n = losses.numel()
        return top.mean()

    @staticmethod
    def backward(ctx, g):
        idx, = ctx.saved_tensors
        share = g / idx.numel()
        out = torch.zeros(ctx.n, dtype=g.dtype, device=g.device)
        return out.index_add(0, idx, share.expand(idx.numel())), None
