import torch
import torch.nn.functional as F


def _delay(x, k):
    return F.pad(x, (k, 0))[..., :x.shape[-1]] if k else x


def _allpole(x, a):
    """y[t] = x[t] - sum_k a[k] y[t - 1 - k], from rest"""
    ys = []
    for t in range(x.shape[-1]):
        v = x[..., t]
        for k in range(min(len(a), t)):
            v = v - a[k] * ys[t - 1 - k]
        ys.append(v)
    return torch.stack(ys, -1)


class IIRFilter(torch.autograd.Function):
    """lfilter(b, [1, *a], x) over the last axis, with the adjoint filter in backward."""

    @staticmethod
    def forward(ctx, x, b, a):
        fir = sum(b[k] * _delay(x, k) for k in range(len(b)))
        y = _allpole(fir, a)
        ctx.save_for_backward(x, b, a, y)
        return y

    @staticmethod
    def backward(ctx, g):
        x, b, a, y = ctx.saved_tensors
        w = _allpole(g.flip(-1), a).flip(-1)
        gx = sum(b[k] * _delay(w.flip(-1), k) for k in range(len(b))).flip(-1)
        gb = torch.stack([(w * _delay(x, k)).sum() for k in range(len(b))])
        ga = torch.stack([-(w * _delay(y, k)).sum() for k in range(len(a))])
        return gx, gb, ga
