import torch


def _dist(p, t):
    d = p - t
    return (d[:, :2] ** 2).sum(1) + 0.25 * (d[:, 2:] ** 2).sum(1)


class GaussianBoxLoss(torch.autograd.Function):
    """Wasserstein loss of boxes as gaussians, pred and target (N, 4) cx, cy, w, h -> (N,)"""

    @staticmethod
    def forward(ctx, pred, target, tau=1.0):
        ctx.tau = tau
        d2 = _dist(pred, target)
        ctx.save_for_backward(pred, target)
        return 1 - 1 / (tau + torch.log1p(d2))

    @staticmethod
    def backward(ctx, g):
        pred, target = ctx.saved_tensors
        d2 = _dist(pred, target)
        g = g / ((1 + d2) * (ctx.tau + torch.log1p(d2)) ** 2)
        d = pred - target
        gp = g[:, None] * torch.cat([2 * d[:, :2], 0.5 * d[:, 2:]], 1)
        return gp, -gp, None
