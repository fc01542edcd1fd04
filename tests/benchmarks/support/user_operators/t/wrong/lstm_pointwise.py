import torch


class LSTMPointwise(torch.autograd.Function):
    @staticmethod
    def forward(ctx, gates, c):
        ctx.save_for_backward(gates, c)
        i, f, g, o = gates.chunk(4, 1)
        new_c = f.sigmoid() * c + i.sigmoid() * g.tanh()
        return o.sigmoid() * new_c.tanh(), new_c

    @staticmethod
    def backward(ctx, grad_h, grad_c):
        gates, c = ctx.saved_tensors
        i, f, g, o = gates.chunk(4, 1)
        i, f, g, o = i.sigmoid(), f.sigmoid(), g.tanh(), o.sigmoid()
        t = (f * c + i * g).tanh()
        do = grad_h * t * o * (1 - o)
        dc = grad_h * o * (1 - t**2)
        di, df, dg = dc * g * i * (1 - i), dc * c * f * (1 - f), dc * i * (1 - g**2)
        return torch.cat([di, df, dg, do], 1), dc * f
