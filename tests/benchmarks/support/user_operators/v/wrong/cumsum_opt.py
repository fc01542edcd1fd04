import torch


def _cumsum(x, dim, exclusive, reverse):
    if reverse:
        x = x.flip(dim)
    y = x.cumsum(dim)
    if exclusive:
        y = y - x
    return y.flip(dim) if reverse else y


class Cumsum(torch.autograd.Function):
    """tf.cumsum(x, axis, exclusive, reverse)"""

    @staticmethod
    def forward(ctx, x, dim=-1, exclusive=False, reverse=False):
        ctx.args = dim, exclusive, reverse
        return _cumsum(x, dim, exclusive, reverse)

    @staticmethod
    def backward(ctx, g):
        dim, exclusive, reverse = ctx.args
        return _cumsum(g, dim, False, not reverse), None, None, None
