import torch
from torch import nn
from torch.autograd.function import once_differentiable


class _Coupling(torch.autograd.Function):
    """y1 = x1 + tanh(x2 Wf), y2 = x2 + tanh(y1 Wg); the input is rebuilt from the output"""

    @staticmethod
    def forward(ctx, x, Wf, Wg):
        x1, x2 = x.chunk(2, -1)
        y1 = x1 + torch.tanh(x2 @ Wf)
        y2 = x2 + torch.tanh(y1 @ Wg)
        ctx.save_for_backward(y1, y2, Wf, Wg)
        return torch.cat([y1, y2], -1)

    @staticmethod
    @once_differentiable
    def backward(ctx, gy):
        y1, y2, Wf, Wg = ctx.saved_tensors
        g1, g2 = gy.chunk(2, -1)
        tg = torch.tanh(y1 @ Wg)
        x2 = y2.sub_(tg)
        tf = torch.tanh(x2 @ Wf)
        gg = g2 * (1 - tg ** 2)
        g1 = g1 + gg @ Wg.t()
        gf = g1 * (1 - tf ** 2)
        gx = torch.cat([g1, g2 + gf @ Wf.t()], -1)
        return gx, x2.t() @ gf, y1.t() @ gg


class RevCoupling(nn.Module):
    def __init__(self, dim):
        super().__init__()
        h = dim // 2
        self.Wf = nn.Parameter(torch.randn(h, h) / h ** 0.5)
        self.Wg = nn.Parameter(torch.randn(h, h) / h ** 0.5)

    def forward(self, x):
        return _Coupling.apply(x, self.Wf, self.Wg)
