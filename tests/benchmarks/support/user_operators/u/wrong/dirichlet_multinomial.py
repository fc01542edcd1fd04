import torch


class DirMultLogProb(torch.autograd.Function):
    """log-probability of counts (N, K) under a Dirichlet-multinomial with alpha (K,) or (N, K) > 0,
    without the multinomial coefficient."""

    @staticmethod
    def forward(ctx, counts, alpha):
        counts = counts.to(alpha.dtype)
        ctx.save_for_backward(counts, alpha)
        total = alpha.sum(-1)
        return (
            torch.lgamma(total)
            - torch.lgamma(total + counts.sum(-1))
            + (torch.lgamma(alpha + counts) - torch.lgamma(alpha)).sum(-1)
        )

    @staticmethod
    def backward(ctx, g):
        counts, alpha = ctx.saved_tensors
        total = alpha.sum(-1)
        n = counts.sum()
        outer = torch.digamma(total) - torch.digamma(total + n)
        inner = torch.digamma(alpha + counts) - torch.digamma(alpha)
        g_alpha = g[:, None] * (outer[..., None] + inner)
        return None, g_alpha.sum_to_size(alpha.shape)
