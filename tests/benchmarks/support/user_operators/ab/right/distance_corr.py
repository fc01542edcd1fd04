import torch
from torch.autograd.function import once_differentiable


def _centred(d):
    return d - d.mean(0, keepdim=True) - d.mean(1, keepdim=True) + d.mean()


class DistanceCorrelation(torch.autograd.Function):
    """Squared distance correlation of the paired samples x (n, p) and y (n, q)."""

    @staticmethod
    def forward(ctx, x, y):
        dx, dy = x[:, None] - x[None], y[:, None] - y[None]
        a, b = dx.norm(dim=-1), dy.norm(dim=-1)
        A, B = _centred(a), _centred(b)
        va, vb, cov = (A * A).sum(), (B * B).sum(), (A * B).sum()
        r = cov / (va * vb).sqrt()
        ctx.save_for_backward(dx, dy, a, b, A, B, r)
        return r

    @staticmethod
    @once_differentiable
    def backward(ctx, g):
        dx, dy, a, b, A, B, r = ctx.saved_tensors
        va, vb = (A * A).sum(), (B * B).sum()
        root = (va * vb).sqrt()

        def pull(weight, diff, dist):
            dist = dist.masked_fill(dist == 0, 1.0)
            return 2 * (weight / dist).unsqueeze(-1).mul(diff).sum(1)

        gx = gy = None
        if ctx.needs_input_grad[0]:
            gx = pull(g * (B / root - r * A / va), dx, a)
        if ctx.needs_input_grad[1]:
            gy = pull(g * (A / root - r * B / vb), dy, b)
        return gx, gy
