import torch


def _shift(t):
    """one zero row on top and one zero column on the left, the last ones drop out"""
    t = torch.nn.functional.pad(t, (1, 0, 1, 0))
    return t[..., :-1, :-1]


def _unshift(t):
    t = torch.nn.functional.pad(t, (0, 1, 0, 1))
    return t[..., 1:, 1:]


class IntegralImage(torch.autograd.Function):

    @staticmethod
    def forward(ctx, img, exclusive=False):
        ctx.exclusive = exclusive
        s = img.cumsum(-1).cumsum(-2)
        return _shift(s) if exclusive else s

    @staticmethod
    def backward(ctx, g):
        if ctx.exclusive:
            g = _shift(g)
        g = g.flip(-1, -2).cumsum(-1).cumsum(-2).flip(-1, -2)
        return g, None
