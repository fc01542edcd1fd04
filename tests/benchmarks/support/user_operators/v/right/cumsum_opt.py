import torch


def _cumsum(x, dim, exclusive, reverse):
    if reverse:
        x = x.flip(dim)
    y = x.cumsum(dim)
    if exclusive:
        y = y - x
    return y.flip(dim) if reverse else y


class Cumsum(torch.autograd.Function):
    @staticmethod
    def forward(x, dim=-1, exclusive=False, reverse=False):
        return _cumsum(x, dim, exclusive, reverse)

    @staticmethod
    def setup_context(ctx, inputs, output):
        ctx.args = inputs[1:]

    @staticmethod
    def backward(ctx, g):
        dim, exclusive, reverse = ctx.args
        return _cumsum(g, dim, exclusive, not reverse), None, None, None
