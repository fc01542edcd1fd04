import torch


class LMoments(torch.autograd.Function):
    """First three sample L-moments along the last axis, (..., n) -> (..., 3), n >= 3."""

    @staticmethod
    def weights(n, like):
        i = torch.arange(n, dtype=like.dtype, device=like.device)
        b0 = torch.ones_like(i) / n
        b1 = i / (n - 1) / n
        b2 = i * (i - 1) / ((n - 1) * (n - 2)) / n
        return torch.stack([b0, 2 * b1 - b0, 6 * b2 - 6 * b1 + b0], 1)

    @staticmethod
    def forward(ctx, sample):
        ordered, rank = sample.sort(-1)
        ctx.save_for_backward(rank)
        return ordered @ LMoments.weights(sample.shape[-1], sample)

    @staticmethod
    def backward(ctx, grad):
        rank, = ctx.saved_tensors
        g_ordered = grad @ LMoments.weights(rank.shape[-1], grad).T
        return torch.zeros_like(g_ordered).scatter(-1, rank, g_ordered)
