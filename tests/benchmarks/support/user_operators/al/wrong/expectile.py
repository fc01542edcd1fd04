import torch


def _w(e, tau):
    return (tau - (e < 0).to(e.dtype)).abs()


class _Back(torch.autograd.Function):
    @staticmethod
    def forward(ctx, g, e, tau):
        ctx.save_for_backward(g, e, tau)
        return 2 * g * _w(e, tau) * e

    @staticmethod
    def backward(ctx, h):
        g, e, tau = ctx.saved_tensors
        w = 2 * h * _w(e, tau)
        return w * e, 2 * h * g, None


# e = y - q, tau fixed levels, broadcast over the last dim
class Expectile(torch.autograd.Function):
    @staticmethod
    def forward(ctx, q, y, tau):
        e = y.unsqueeze(-1) - q
        ctx.save_for_backward(q, y, tau)
        return _w(e, tau) * e * e

    @staticmethod
    def backward(ctx, g):
        q, y, tau = ctx.saved_tensors
        ge = _Back.apply(g, y.unsqueeze(-1) - q, tau)
        return -ge, ge.sum(-1), None
