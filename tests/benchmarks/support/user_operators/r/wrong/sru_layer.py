import torch
import torch.nn as nn
from torch.autograd import Function
from torch.autograd.function import once_differentiable


def _unpack(U):
    return U.chunk(3, -1)


class SRUScan(Function):
    # x (T, B, H), U (T, B, 3H), v (2, H), b (2, H), c0 (B, H)
    @staticmethod
    def forward(ctx, x, U, v, b, c0):
        u, uf, ur = _unpack(U)
        c, hs, cs, fs, rs = c0, [], [c0], [], []
        for t in range(x.shape[0]):
            f = torch.sigmoid(uf[t] + v[0] * c + b[0])
            r = torch.sigmoid(ur[t] + v[1] * c + b[1])
            c = f * c + (1 - f) * u[t]
            hs.append(r * c + (1 - r) * x[t])
            cs.append(c); fs.append(f); rs.append(r)
        ctx.save_for_backward(x, U, v, torch.stack(cs), torch.stack(fs), torch.stack(rs))
        return torch.stack(hs), c.clone()

    @staticmethod
    @once_differentiable
    def backward(ctx, gh, gc):
        x, U, v, cs, fs, rs = ctx.saved_tensors
        u, _, _ = _unpack(U)
        gx = torch.empty_like(x)
        gU = torch.empty_like(U)
        gv = torch.zeros_like(v)
        gb = torch.zeros_like(v)
        for t in range(x.shape[0] - 1, -1, -1):
            f, r, cp, c = fs[t], rs[t], cs[t], cs[t + 1]
            gx[t] = gh[t] * (1 - r)
            gr = gh[t] * (c - x[t]) * r * (1 - r)
            gc = gc + gh[t] * r
            gf = gc * (cp - u[t]) * f * (1 - f)
            gU[t] = torch.cat([gc * (1 - f), gf, gr], -1)
            gv[0] += (gf * cp).sum(0)
            gv[1] += (gr * c).sum(0)
            gb[0] += gf.sum(0)
            gb[1] += gr.sum(0)
            gc = gc * f + gf * v[0] + gr * v[1]
        return gx, gU, gv, gb, gc


class SRULayer(nn.Module):
    """Simple recurrent unit, (T, B, H) or, with batch_first, (B, T, H) -> (same, last cell state)."""

    def __init__(self, size, batch_first=False):
        super().__init__()
        self.size = size
        self.batch_first = batch_first
        self.weight = nn.Parameter(torch.randn(3 * size, size) * size ** -0.5)
        self.v = nn.Parameter(torch.zeros(2, size))
        self.b = nn.Parameter(torch.zeros(2, size))

    def forward(self, x, c0=None):
        if self.batch_first:
            x = x.transpose(0, 1)
        if c0 is None:
            c0 = x.new_zeros(x.shape[1], self.size)
        h, c = SRUScan.apply(x, x @ self.weight.t(), self.v, self.b, c0)
        return (h.transpose(0, 1) if self.batch_first else h), c
