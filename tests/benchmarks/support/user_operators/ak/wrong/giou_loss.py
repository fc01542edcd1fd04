import torch
from torch.autograd.function import once_differentiable

EPS = 1e-9


def _more(a, b):
    return (a > b).to(a.dtype) + 0.5 * (a == b).to(a.dtype)


def _parts(p, t):
    lo, hi = torch.maximum(p[:, :2], t[:, :2]), torch.minimum(p[:, 2:], t[:, 2:])
    size = (hi - lo).clamp(min=0)
    hull = torch.maximum(p[:, 2:], t[:, 2:]) - torch.minimum(p[:, :2], t[:, :2])
    inter, c = size.prod(-1), hull.prod(-1) + EPS
    union = (p[:, 2:] - p[:, :2]).prod(-1) + (t[:, 2:] - t[:, :2]).prod(-1) - inter + EPS
    return size, hull, inter, union, c


class GIoULoss(torch.autograd.Function):
    @staticmethod
    def forward(ctx, pred, target):
        ctx.save_for_backward(pred, target)
        _, _, inter, union, c = _parts(pred, target)
        return 2 - inter / union - union / c

    @staticmethod
    @once_differentiable
    def backward(ctx, g):
        pred, target = ctx.saved_tensors
        size, hull, inter, union, c = _parts(pred, target)
        g_union = (g * (inter / union ** 2 - 1 / c))[:, None]
        g_inter = (-g / union)[:, None] - g_union
        g_hull = (g * union / c ** 2)[:, None]
        g_size = g_inter * size.flip(-1) * (inter > 0)[:, None]
        g_box = g_hull * hull.flip(-1)

        def one(a, b):
            wh = (a[:, 2:] - a[:, :2]).flip(-1) * g_union
            low = -wh - g_size * _more(a[:, :2], b[:, :2]) - g_box * _more(b[:, :2], a[:, :2])
            high = wh + g_size * _more(b[:, 2:], a[:, 2:]) + g_box * _more(b[:, 2:], a[:, 2:])
            return torch.cat([low, high], -1)

        return one(pred, target), one(target, pred)
