import torch
from torch.autograd import Function


class CoordGate(Function):
    @staticmethod
    def forward(ctx, x, row, col):
        ctx.save_for_backward(x, row, col)
        return x * row.sigmoid().unsqueeze(-1) * col.sigmoid().unsqueeze(-2)

    @staticmethod
    def backward(ctx, grad):
        x, row, col = ctx.saved_tensors
        a = row.sigmoid().unsqueeze(-1)
        b = col.sigmoid().unsqueeze(-2)
        dx = grad * a * b
        t = dx * x
        return dx, (t * (1 - a)).sum(dim=-1), (t * (1 - b)).sum(dim=-1)
