import torch
import torch.nn as nn


class _Cell(torch.autograd.Function):
    @staticmethod
    def forward(ctx, pre, c, wi, wf, wo):
        ctx.save_for_backward(pre, c, wi, wf, wo)
        i, f, g, o, c2, th = _Cell.gates(pre, c, wi, wf, wo)
        return o * th, c2

    @staticmethod
    def gates(pre, c, wi, wf, wo):
        pi, pf, pg, po = pre.chunk(4, 1)
        i = torch.sigmoid(pi + wi * c)
        f = torch.sigmoid(pf + wf * c)
        g = torch.tanh(pg)
        c2 = f * c + i * g
        o = torch.sigmoid(po + wo * c2)
        return i, f, g, o, c2, torch.tanh(c2)

    @staticmethod
    def backward(ctx, gh, gc):
        pre, c, wi, wf, wo = ctx.saved_tensors
        i, f, g, o, c2, th = _Cell.gates(pre, c, wi, wf, wo)
        do = gh * th * o * (1 - o)
        dc2 = gc + gh * o * (1 - th * th) + do * wo
        di = dc2 * g * i * (1 - i)
        df = dc2 * c * f * (1 - f)
        dg = dc2 * i * (1 - g * g)
        dc = dc2 * f + di * wi + df * wf
        return torch.cat([di, df, dg, do], 1), dc, (di * c).sum(0), (df * c).sum(0), (do * c2).sum(0)


class PeepholeLSTMCell(nn.Module):
    def __init__(self, n_in, n_hidden):
        super().__init__()
        self.ih = nn.Linear(n_in, 4 * n_hidden)
        self.hh = nn.Linear(n_hidden, 4 * n_hidden, bias=False)
        self.peep = nn.Parameter(torch.zeros(3, n_hidden))

    def forward(self, x, state):
        h, c = state
        return _Cell.apply(self.ih(x) + self.hh(h), c, *self.peep)
