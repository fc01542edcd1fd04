import itertools
import torch
from torch.autograd.function import once_differentiable


def corners(x, D):
    q = x.clamp(0, 1) * (D - 1)
    i = q.floor().long().clamp(max=D - 2)
    f = q - i
    for c in itertools.product((0, 1), repeat=3):
        k = ((i[:, 0] + c[0]) * D + i[:, 1] + c[1]) * D + i[:, 2] + c[2]
        yield k, c, [f[:, j] if c[j] else 1 - f[:, j] for j in range(3)]


class LUT3(torch.autograd.Function):
    """lut 3 D D D, x N 3 -> N 3"""

    @staticmethod
    def forward(ctx, lut, x):
        ctx.save_for_backward(lut, x)
        L = lut.reshape(3, -1)
        return sum(L[:, k].t() * (w[0] * w[1] * w[2])[:, None] for k, c, w in corners(x, lut.size(1)))

    @staticmethod
    @once_differentiable
    def backward(ctx, g):
        lut, x = ctx.saved_tensors
        D = lut.size(1)
        L = lut.reshape(3, -1)
        gl = torch.zeros_like(lut)
        gx = torch.zeros_like(x)
        for k, c, w in corners(x, D):
            gl.reshape(3, -1).index_add_(1, k, (g * (w[0] * w[1] * w[2])[:, None]).t())
            gw = (g * L[:, k].t()).sum(1)
            for j in range(3):
                o = w[(j + 1) % 3] * w[(j + 2) % 3]
                gx[:, j] += gw * o * (1 if c[j] else -1)
        gx *= (D - 1) * ((x > 0) & (x < 1))
        return gl, gx
