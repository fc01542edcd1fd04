import torch


class Splat2D(torch.autograd.Function):
    """Sum of 2-D Gaussians on an H x W pixel grid.

    mean (N, 2) as (x, y), conic (N, 3) = upper triangle of the inverse covariance, opacity (N,)
    """

    @staticmethod
    def _eval(mean, conic, H, W):
        xs = torch.arange(W, dtype=mean.dtype, device=mean.device) + 0.5
        ys = torch.arange(H, dtype=mean.dtype, device=mean.device) + 0.5
        dx = xs.view(1, 1, W) - mean[:, 0].view(-1, 1, 1)
        dy = ys.view(1, H, 1) - mean[:, 1].view(-1, 1, 1)
        a, b, c = conic.reshape(-1, 3, 1, 1).unbind(1)
        return dx, dy, a, b, c, torch.exp(-0.5 * (a * dx * dx + c * dy * dy) - b * dx * dy)

    @staticmethod
    def forward(ctx, mean, conic, opacity, H, W):
        ctx.save_for_backward(mean, conic, opacity)
        ctx.size = H, W
        e = Splat2D._eval(mean, conic, H, W)[-1]
        return torch.einsum("n,nhw->hw", opacity, e)

    @staticmethod
    def backward(ctx, g):
        mean, conic, opacity = ctx.saved_tensors
        dx, dy, a, b, c, e = Splat2D._eval(mean, conic, *ctx.size)
        ge = g * e
        gp = ge * opacity.view(-1, 1, 1)
        g_mean = torch.stack([(gp * (a * dx + b * dy)).sum((1, 2)), (gp * (b * dx + c * dy)).sum((1, 2))], 1)
        g_conic = torch.stack([-0.5 * (gp * dx * dx).sum((1, 2)),
                               -0.5 * (gp * dx * dy).sum((1, 2)),
                               -0.5 * (gp * dy * dy).sum((1, 2))], 1)
        return g_mean, g_conic, ge.sum((1, 2)), None, None
