import torch
from torch import nn
from torch.autograd import Function


class _ReverseRows(Function):
    @staticmethod
    def forward(ctx, x, factor):
        ctx.save_for_backward(factor)
        return x.view_as(x)

    @staticmethod
    def backward(ctx, g):
        factor, = ctx.saved_tensors
        return g * factor.view(-1, *[1] * (g.dim() - 1)), None


class DomainReversal(nn.Module):
    """Identity whose gradient is multiplied by -target for samples of the target domain and by
    -source for those of the source domain.

    forward(x, is_target): x (B, ...), is_target (B,) bool
    """

    def __init__(self, target=1.0, source=1.0):
        super().__init__()
        self.target, self.source = target, source

    def forward(self, x, is_target):
        t = torch.full_like(is_target, -self.target, dtype=x.dtype)
        s = torch.full_like(is_target, self.source, dtype=x.dtype)
        return _ReverseRows.apply(x, torch.where(is_target, t, s))
