import torch
import torch.nn as nn
from torch.autograd.function import once_differentiable


def _allpole(v, a1, a2):
    """y_t = v_t - a1 y_{t-1} - a2 y_{t-2} along the last dim"""
    y1 = y2 = torch.zeros_like(v[..., 0])
    out = []
    for t in range(v.shape[-1]):
        y = v[..., t] - a1 * y1 - a2 * y2
        out.append(y)
        y1, y2 = y, y1
    return torch.stack(out, -1)


def _delay(x, k):
    return x if k == 0 else torch.cat([torch.zeros_like(x[..., :k]), x[..., :-k]], -1)


class BiquadFunction(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, b, a):
        v = b[0] * x + b[1] * _delay(x, 1) + b[2] * _delay(x, 2)
        y = _allpole(v, a[0], a[1])
        ctx.save_for_backward(x, b, a, y)
        return y

    @staticmethod
    @once_differentiable
    def backward(ctx, grad):
        x, b, a, y = ctx.saved_tensors
        # adjoint of the recursion: the same filter run backwards
        u = _allpole(grad.flip(-1), a[0], a[1])
        gx = sum(b[k] * _delay(u, k) for k in range(3)).flip(-1)
        u = u.flip(-1)
        gb = torch.stack([(u * _delay(x, k)).sum() for k in range(3)])
        ga = torch.stack([-(u * _delay(y, k)).sum() for k in (1, 2)])
        return gx, gb, ga


class Biquad(nn.Module):
    """Second order section, a0 = 1; x (..., T) with T > 2"""

    def __init__(self, b=(0.3, 0.2, 0.1), a=(-0.5, 0.25)):
        super().__init__()
        self.b = nn.Parameter(torch.tensor(b))
        self.a = nn.Parameter(torch.tensor(a))

    def forward(self, x):
        return BiquadFunction.apply(x, self.b, self.a)
