import torch


class CategoricalEntropy(torch.autograd.Function):
    """Entropy of probabilities along the last axis, H = -sum p log p with 0 log 0 = 0."""

    @staticmethod
    def forward(ctx, p, base):
        ctx.save_for_backward(p)
        ctx.log_base = torch.log(torch.tensor(float(base), dtype=p.dtype, device=p.device))
        return -torch.special.xlogy(p, p).sum(-1) / ctx.log_base

    @staticmethod
    def backward(ctx, g):
        p, = ctx.saved_tensors
        d = -(torch.log(p) + 1) / ctx.log_base
        return g.unsqueeze(-1) * d, None
