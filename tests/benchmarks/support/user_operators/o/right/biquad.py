import torch
import torch.nn.functional as F
from torch.autograd import Function


def _delay(x, k):
    return F.pad(x, (k, 0))[..., :x.size(-1)]


def _recurse(u, a):
    """y_t = u_t - a1 y_{t-1} - a2 y_{t-2}"""
    y1 = y2 = torch.zeros_like(u[:, 0])
    out = []
    for t in range(u.size(1)):
        y = u[:, t] - a[0] * y1 - a[1] * y2
        out.append(y)
        y1, y2 = y, y1
    return torch.stack(out, 1)


class Biquad(Function):
    """Second-order IIR section, direct form I, zero initial state.

    x: (B, T); b: (3,) numerator; a: (2,) denominator without its leading one.
    """

    @staticmethod
    def forward(ctx, x, b, a):
        if x.is_complex():
            raise TypeError("x must be real")
        if b.shape != (3,) or a.shape != (2,):
            raise ValueError("b must be (3,) and a (2,)")
        y = _recurse(sum(b[k] * _delay(x, k) for k in range(3)), a)
        ctx.save_for_backward(x, b, a, y)
        return y

    @staticmethod
    def backward(ctx, grad):
        x, b, a, y = ctx.saved_tensors
        v = _recurse(grad.flip(1), a)
        g_x = sum(b[k] * _delay(v, k) for k in range(3)).flip(1)
        v = v.flip(1)
        g_b = torch.stack([(v * _delay(x, k)).sum() for k in range(3)])
        g_a = -torch.stack([(v * _delay(y, k)).sum() for k in (1, 2)])
        return g_x, g_b, g_a
