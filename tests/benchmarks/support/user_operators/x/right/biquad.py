import torch
from torch import nn
from torch.autograd.function import once_differentiable


def _delay(x, n):
    return torch.nn.functional.pad(x, (n, 0))[..., : x.shape[-1]]


def _advance(x, n):
    return torch.nn.functional.pad(x, (0, n))[..., n:]


def _all_pole(v, a):
    out = []
    for t in range(v.shape[-1]):
        y = v[..., t]
        for i in (1, 2):
            if t >= i:
                y = y - a[i - 1] * out[t - i]
        out.append(y)
    return torch.stack(out, -1)


class _BiquadFn(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, b, a):
        y = _all_pole(sum(b[i] * _delay(x, i) for i in range(3)), a)
        ctx.save_for_backward(x, b, a, y)
        return y

    @staticmethod
    @once_differentiable
    def backward(ctx, g):
        x, b, a, y = ctx.saved_tensors
        lam = _all_pole(g.flip(-1), a).flip(-1)
        gx = sum(b[i] * _advance(lam, i) for i in range(3))
        gb = torch.stack([(lam * _delay(x, i)).sum() for i in range(3)])
        ga = torch.stack([-(lam * _delay(y, i)).sum() for i in (1, 2)])
        return gx, gb, ga


class Biquad(nn.Module):
    """Second order IIR filter over the last axis, b0 b1 b2 / 1 a1 a2."""

    def __init__(self):
        super().__init__()
        self.b = nn.Parameter(torch.tensor([1.0, 0.0, 0.0]))
        self.a = nn.Parameter(torch.zeros(2))

    def forward(self, x):
        return _BiquadFn.apply(x, self.b, self.a)
