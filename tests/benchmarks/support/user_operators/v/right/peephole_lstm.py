import torch
from torch import nn


class PeepholeCell(torch.autograd.Function):
    @staticmethod
    def run(pre, c, p):
        ai, af, ag, ao = pre.chunk(4, 1)
        i = torch.sigmoid(ai + p[0] * c)
        f = torch.sigmoid(af + p[1] * c)
        g = torch.tanh(ag)
        c1 = f * c + i * g
        o = torch.sigmoid(ao + p[2] * c1)
        return i, f, g, o, c1

    @staticmethod
    def forward(ctx, pre, c, p):
        i, f, g, o, c1 = PeepholeCell.run(pre, c, p)
        ctx.save_for_backward(pre, c, p)
        return o * torch.tanh(c1), c1

    @staticmethod
    def backward(ctx, dh, dc1):
        pre, c, p = ctx.saved_tensors
        i, f, g, o, c1 = PeepholeCell.run(pre, c, p)
        th = torch.tanh(c1)
        do = dh * th * o * (1 - o)
        dc1 = dc1 + dh * o * (1 - th * th) + do * p[2]
        di = dc1 * g * i * (1 - i)
        df = dc1 * c * f * (1 - f)
        dg = dc1 * i * (1 - g * g)
        dc = dc1 * f + di * p[0] + df * p[1]
        dp = torch.stack([(di * c).sum(0), (df * c).sum(0), (do * c1).sum(0)])
        return torch.cat([di, df, dg, do], 1), dc, dp


class PeepholeLSTMCell(nn.Module):

    def __init__(self, input_size, hidden_size):
        super().__init__()
        self.lin = nn.Linear(input_size + hidden_size, 4 * hidden_size)
        self.peep = nn.Parameter(torch.zeros(3, hidden_size))

    def forward(self, x, state):
        h, c = state
        return PeepholeCell.apply(self.lin(torch.cat([x, h], 1)), c, self.peep)
