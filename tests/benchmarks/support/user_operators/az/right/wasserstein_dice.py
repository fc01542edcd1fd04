import torch
from torch.autograd import Function


class WassersteinDice(Function):
    """Generalised Wasserstein Dice loss with background class 0.

    probs: (B, C, N) class probabilities; label: (B, N) long; distance: (C, C), distance[i, j] between
    true class i and predicted class j, zero diagonal (a constant); eps smooths. Returns (B,).
    """

    @staticmethod
    def forward(ctx, probs, label, distance, eps=1e-5):
        if distance.shape != (probs.size(1),) * 2:
            raise ValueError("distance must be (classes, classes)")
        cost = distance[label].transpose(1, 2)
        delta = (cost * probs).sum(1)
        foreground = distance[label, 0]
        hit = 2 * (foreground * (1 - delta)).sum(1)
        ctx.save_for_backward(probs, label, distance)
        ctx.eps = eps
        return 1 - (hit + eps) / (hit + delta.sum(1) + eps)

    @staticmethod
    def backward(ctx, grad):
        probs, label, distance = ctx.saved_tensors
        cost = distance[label].transpose(1, 2)
        delta = (cost * probs).sum(1)
        foreground = distance[label, 0]
        hit = 2 * (foreground * (1 - delta)).sum(1)
        total = hit + delta.sum(1) + ctx.eps
        d_hit = -(total - hit - ctx.eps) / total**2
        d_miss = (hit + ctx.eps) / total**2
        d_delta = grad[:, None] * (d_miss[:, None] - 2 * d_hit[:, None] * foreground)
        return d_delta[:, None] * cost, None, None, None
