import torch
import torch.nn as nn


class SReLUFunction(torch.autograd.Function):

    @staticmethod
    def forward(x, t_left, a_left, t_right, a_right):
        shape = [1, -1] + [1] * (x.dim() - 2)
        tl, al, tr, ar = (p.view(shape) for p in (t_left, a_left, t_right, a_right))
        y = torch.where(x <= tl, tl + al * (x - tl), x)
        return torch.where(x >= tr, tr + ar * (x - tr), y)

    @staticmethod
    def setup_context(ctx, inputs, output):
        ctx.save_for_backward(*inputs)

    @staticmethod
    def backward(ctx, grad):
        x, t_left, a_left, t_right, a_right = ctx.saved_tensors
        shape = [1, -1] + [1] * (x.dim() - 2)
        tl, al, tr, ar = (p.view(shape) for p in (t_left, a_left, t_right, a_right))
        up = x >= tr
        low = (x <= tl) & ~up
        dims = [0] + list(range(2, x.dim()))
        g_x = grad * torch.where(up, ar, torch.where(low, al, torch.ones_like(x)))
        g_tl = (grad * (1 - al) * low).sum(dims)
        g_al = (grad * (x - tl) * low).sum(dims)
        g_tr = (grad * (1 - ar) * up).sum(dims)
        g_ar = (grad * (x - tr) * up).sum(dims)
        return g_x, g_tl, g_al, g_tr, g_ar


class SReLU(nn.Module):
    """S-shaped rectified linear unit, four parameters per channel (dimension 1)."""

    def __init__(self, num_channels):
        super().__init__()
        self.t_left = nn.Parameter(torch.full((num_channels,), -0.5))
        self.a_left = nn.Parameter(torch.full((num_channels,), 0.1))
        self.t_right = nn.Parameter(torch.full((num_channels,), 0.6))
        self.a_right = nn.Parameter(torch.full((num_channels,), 0.4))

    def forward(self, x):
        return SReLUFunction.apply(x, self.t_left, self.a_left, self.t_right, self.a_right)
