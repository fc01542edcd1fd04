import torch
from torch import nn
from torch.autograd import Function


class _MGU(Function):
    @staticmethod
    def forward(ctx, x, h, W, U, b):
        Wf, Wn = W.chunk(2)
        Uf, Un = U.chunk(2)
        bf, bn = b.chunk(2)
        f = torch.sigmoid(x @ Wf.t() + h @ Uf.t() + bf)
        n = torch.tanh(x @ Wn.t() + (f * h) @ Un.t() + bn)
        ctx.save_for_backward(x, h, W, U, b)
        return (1 - f) * h + f * n

    @staticmethod
    def backward(ctx, g):
        x, h, W, U, b = ctx.saved_tensors
        Wf, Wn = W.chunk(2)
        Uf, Un = U.chunk(2)
        bf, bn = b.chunk(2)
        # recompute, so that we can be differentiated again
        f = torch.sigmoid(x @ Wf.t() + h @ Uf.t() + bf)
        fh = f * h
        n = torch.tanh(x @ Wn.t() + fh @ Un.t() + bn)

        dn = g * f * (1 - n * n)
        dfh = dn @ Un
        df = (g * (n - h) + dfh * h) * f * (1 - f)
        dh = g * (1 - f) + dfh * f + df @ Uf
        dx = df @ Wf + dn @ Wn
        dW = torch.cat([df.t() @ x, dn.t() @ x])
        dU = torch.cat([df.t() @ h, dn.t() @ h])
        db = torch.cat([df.sum(0), dn.sum(0)])
        return dx, dh, dW, dU, db


class MGUCell(nn.Module):
    """Minimal gated unit. x: (B, input_size), h: (B, hidden_size) or None -> new h"""

    def __init__(self, input_size, hidden_size):
        super().__init__()
        self.hidden_size = hidden_size
        self.weight_ih = nn.Parameter(torch.empty(2 * hidden_size, input_size))
        self.weight_hh = nn.Parameter(torch.empty(2 * hidden_size, hidden_size))
        self.bias = nn.Parameter(torch.zeros(2 * hidden_size))
        self.reset_parameters()

    def reset_parameters(self):
        bound = self.hidden_size ** -0.5
        nn.init.uniform_(self.weight_ih, -bound, bound)
        nn.init.uniform_(self.weight_hh, -bound, bound)

    def forward(self, x, h=None):
        if h is None:
            h = x.new_zeros(x.shape[0], self.hidden_size)
        return _MGU.apply(x, h, self.weight_ih, self.weight_hh, self.bias)
