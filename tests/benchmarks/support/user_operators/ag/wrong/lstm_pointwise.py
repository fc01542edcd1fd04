import torch
from torch.autograd import Function

# pointwise half of an LSTM cell; gates come from one big matmul, order i f g o

class LSTMPointwise(Function):
    @staticmethod
    def forward(ctx, gates, c_prev, forget_bias=0.0):
        i, f, g, o = gates.chunk(4, dim=-1)
        c = torch.sigmoid(f + forget_bias) * c_prev + torch.sigmoid(i) * torch.tanh(g)
        h = torch.sigmoid(o) * torch.tanh(c)
        ctx.save_for_backward(gates, c_prev, c)
        ctx.fb = forget_bias
        return h, c

    @staticmethod
    def backward(ctx, dh, dc):
        gates, c_prev, c = ctx.saved_tensors
        i, f, g, o = gates.chunk(4, dim=-1)
        i, f, g, o = i.sigmoid(), (f + ctx.fb).sigmoid(), g.tanh(), o.sigmoid()
        tc = c.tanh()
        do = dh * tc * o * (1 - o)
        dcell = dh * o * (1 - tc * tc)
        di = dcell * g * i * (1 - i)
        df = dcell * c_prev * f * (1 - f)
        dg = dcell * i * (1 - g * g)
        return torch.cat([di, df, dg, do], dim=-1), dcell * f, None
