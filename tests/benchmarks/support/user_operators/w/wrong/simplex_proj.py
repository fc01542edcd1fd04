import torch


class SimplexProjection(torch.autograd.Function):
    """Euclidean projection of the rows of x (N, K) onto {p >= 0, sum p = radius}."""

    @staticmethod
    def forward(ctx, x, radius=1.0):
        s, _ = x.sort(dim=1, descending=True)
        css = s.cumsum(1) - radius
        k = torch.arange(1, x.shape[1] + 1, dtype=x.dtype, device=x.device)
        rho = (s * k > css).sum(1, keepdim=True)
        tau = css.gather(1, rho - 1) / rho
        p = (x - tau).clamp(min=0)
        ctx.save_for_backward(p > 0)
        return p

    @staticmethod
    def backward(ctx, g):
        support, = ctx.saved_tensors
        g = g * support
        mean = g.mean(1, keepdim=True)
        return support * (g - mean), None
