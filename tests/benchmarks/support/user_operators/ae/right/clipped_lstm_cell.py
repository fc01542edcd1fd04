import torch
from torch import nn
from torch.autograd.function import once_differentiable


class _LSTMPointwise(torch.autograd.Function):
    """gates: (B, 4H) in the order i f g o, c: (B, H); the new cell is clipped to +-clip"""

    @staticmethod
    def forward(ctx, gates, c_prev, clip, forget_bias):
        i, f, g, o = gates.chunk(4, 1)
        i, f, g, o = i.sigmoid(), (f + forget_bias).sigmoid(), g.tanh(), o.sigmoid()
        raw = f * c_prev + i * g
        c = raw if clip is None else raw.clamp(-clip, clip)
        t = c.tanh()
        ctx.save_for_backward(i, f, g, o, c_prev, raw, t)
        ctx.clip = clip
        return o * t, c.clone()

    @staticmethod
    @once_differentiable
    def backward(ctx, dh, dc):
        i, f, g, o, c_prev, raw, t = ctx.saved_tensors
        do = dh * t * o * (1 - o)
        dc = dc + dh * o * (1 - t * t)
        if ctx.clip is not None:
            dc = dc * (raw.abs() <= ctx.clip)
        di = dc * g * i * (1 - i)
        df = dc * c_prev * f * (1 - f)
        dg = dc * i * (1 - g * g)
        return torch.cat([di, df, dg, do], 1), dc * f, None, None


class ClippedLSTMCell(nn.Module):
    def __init__(self, input_size, hidden_size, cell_clip=None, forget_bias=1.0):
        super().__init__()
        self.proj = nn.Linear(input_size + hidden_size, 4 * hidden_size)
        self.cell_clip, self.forget_bias = cell_clip, forget_bias

    def forward(self, x, h, c):
        gates = self.proj(torch.cat([x, h], dim=1))
        return _LSTMPointwise.apply(gates, c, self.cell_clip, self.forget_bias)
