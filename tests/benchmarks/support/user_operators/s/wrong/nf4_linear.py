import torch
from torch import nn

NF4 = [-1.0, -0.6962, -0.5251, -0.3949, -0.2844, -0.1848, -0.0911, 0.0,
       0.0796, 0.1609, 0.2461, 0.3379, 0.4407, 0.5626, 0.7230, 1.0]


class _NF4Matmul(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, codes, absmax, table, block):
        w = (table[codes].reshape(-1, block) * absmax[:, None]).reshape(codes.shape)
        ctx.save_for_backward(x, codes, absmax, table)
        ctx.block = block
        return x @ w.t()

    @staticmethod
    def backward(ctx, grad):
        x, codes, absmax, table = ctx.saved_tensors
        levels = table[codes].reshape(-1, ctx.block)
        gx = gabs = None
        if ctx.needs_input_grad[0]:
            gx = grad @ (levels * absmax[:, None]).reshape(codes.shape)
        if ctx.needs_input_grad[2]:
            gw = x.flatten(0, -2).t() @ grad.flatten(0, -2)
            gabs = (gw.reshape(-1, ctx.block) * levels).sum(1)
        return gx, None, gabs, None, None


class NF4Linear(nn.Module):
    """Frozen 4 bit weight, blockwise scales (``absmax``) that are trained.  x: (..., batch, in)."""

    def __init__(self, codes, block_size=64):
        super().__init__()
        self.block_size = block_size
        self.register_buffer("codes", codes.long())
        self.register_buffer("table", torch.tensor(NF4))
        self.absmax = nn.Parameter(torch.ones(codes.numel() // block_size))

    def forward(self, x):
        return _NF4Matmul.apply(x, self.codes, self.absmax, self.table, self.block_size)
