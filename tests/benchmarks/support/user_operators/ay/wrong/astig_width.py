import torch
import torch.nn as nn
from torch.autograd import Function


class _Width(Function):
    @staticmethod
    def forward(ctx, z, w0, c, d, A, B):
        ctx.save_for_backward(z, w0, c, d, A, B)
        u = (z - c) / d
        return w0 * torch.sqrt(1 + u ** 2 + A * u ** 3 + B * u ** 4)

    @staticmethod
    def backward(ctx, g):
        z, w0, c, d, A, B = ctx.saved_tensors
        u = (z - c) / d
        root = torch.sqrt(1 + u ** 2 + A * u ** 3 + B * u ** 4)
        gP = g * w0 / (2 * root)
        gu = gP * (2 * u + 3 * A * u ** 2 + 4 * B * u ** 3)
        gz = gu / d
        return gz, (g * root).sum(), -gz.sum(), -(gu * u).sum(), (gP * u ** 3).sum(), (gP * u ** 4).sum()


class AstigmaticPSFWidth(nn.Module):
    def __init__(self):
        super().__init__()
        self.w0 = nn.Parameter(torch.tensor(1.2))
        self.c = nn.Parameter(torch.tensor(0.15))
        self.d = nn.Parameter(torch.tensor(0.4))
        self.A = nn.Parameter(torch.tensor(0.0))
        self.B = nn.Parameter(torch.tensor(0.0))

    def forward(self, z):
        return _Width.apply(z, self.w0, self.c, self.d, self.A, self.B)
