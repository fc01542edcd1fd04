import torch
import torch.nn.functional as F


def _differences(x):
    dx = F.pad(x[..., :, 1:] - x[..., :, :-1], (0, 1))
    dy = F.pad(x[..., 1:, :] - x[..., :-1, :], (0, 0, 0, 1))
    return dx, dy


class TotalVariation(torch.autograd.Function):
    """Isotropic TV of images (B, C, H, W), smoothed by eps.

    reduction: "none" gives (B,), "sum" and "mean" reduce over the batch.
    """

    @staticmethod
    def forward(ctx, x, eps: float = 1e-3, reduction: str = "mean"):
        dx, dy = _differences(x)
        tv = (dx * dx + dy * dy + eps).sqrt().sum((1, 2, 3))
        ctx.save_for_backward(x)
        ctx.eps, ctx.reduction = eps, reduction
        if reduction == "none":
            return tv
        return tv.mean() if reduction == "mean" else tv.sum()

    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        dx, dy = _differences(x)
        if ctx.reduction == "mean":
            g = g / x.numel()
        g = g.reshape(-1, 1, 1, 1)
        m = (dx * dx + dy * dy + ctx.eps).sqrt()
        px, py = g * dx / m, g * dy / m
        gx = F.pad(px[..., :, :-1], (1, 0)) - px
        gx = gx + F.pad(py[..., :-1, :], (0, 0, 1, 0)) - py
        return gx, None, None
