import torch
import torch.nn.functional as F


def _delay(v, k):
    return F.pad(v, (k, 0))[:, : v.shape[1]]


def _advance(v, k):
    return F.pad(v, (0, k))[:, k:]


def _all_pole(v, a, reverse=False):
    cols = list(v.unbind(1))
    if reverse:
        cols = cols[::-1]
    y1 = y2 = torch.zeros_like(cols[0])
    out = []
    for c in cols:
        y = c - a[0] * y1 - a[1] * y2
        y1, y2 = y, y1
        out.append(y)
    if reverse:
        out = out[::-1]
    return torch.stack(out, 1)


class Biquad(torch.autograd.Function):
    """Second order IIR section, direct form I.

    x : (batch, time)
    b : (3,)  feed-forward taps
    a : (2,)  feedback taps, a0 == 1
    """

    @staticmethod
    def forward(ctx, x, b, a):
        v = sum(b[k] * _delay(x, k) for k in range(3))
        y = _all_pole(v, a)
        ctx.save_for_backward(x, b, a, y)
        return y

    @staticmethod
    def backward(ctx, g):
        x, b, a, y = ctx.saved_tensors
        lam = _all_pole(g, a, reverse=True)
        gx = sum(b[k] * _advance(lam, k) for k in range(3))
        gb = torch.stack([(lam * _delay(x, k)).sum() for k in range(3)])
        ga = -torch.stack([(lam * _delay(y, k)).sum() for k in range(1, 3)])
        return gx, gb, ga
