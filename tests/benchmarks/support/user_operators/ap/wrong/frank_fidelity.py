import torch


class FidelityLoss(torch.autograd.Function):
    """FRank pairwise fidelity. s_i, s_j: scores; target: P(i > j) in [0, 1]. Elementwise, same shape."""

    @staticmethod
    def forward(ctx, s_i, s_j, target):
        p = torch.sigmoid(s_i - s_j)
        ctx.save_for_backward(p, target)
        return 1 - (target * p).sqrt() - ((1 - target) * (1 - p)).sqrt()

    @staticmethod
    def backward(ctx, grad):
        p, target = ctx.saved_tensors
        up = target.sqrt() * p.sqrt() * (1 - p)
        down = (1 - target).sqrt() * (1 - p).sqrt() * p
        g = grad * (down - up) / 2
        return g, -g, None
