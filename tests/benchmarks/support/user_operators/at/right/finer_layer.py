import torch
import torch.nn as nn


class _Finer(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, weight, bias, omega):
        ctx.omega = omega
        ctx.save_for_backward(x, weight, bias)
        z = x @ weight.t() + bias
        return torch.sin(omega * (z.abs() + 1) * z)

    @staticmethod
    def backward(ctx, dy):
        x, weight, bias = ctx.saved_tensors
        omega = ctx.omega
        z = x @ weight.t() + bias
        a = z.abs()
        dz = dy * torch.cos(omega * (a + 1) * z) * omega * (2 * a + 1)
        dz2 = dz.reshape(-1, dz.size(-1))
        dx = dz @ weight
        dw = dz2.t() @ x.reshape(-1, x.size(-1))
        return dx, dw, dz2.sum(0), None


class FinerLayer(nn.Module):
    """Layer with variable-periodic activation sin(omega_0 (|z| + 1) z), FINER (Liu et al. 2024)"""

    def __init__(self, in_features, out_features, omega_0=30.0, first_k=1.0):
        super().__init__()
        self.omega_0 = omega_0
        bound = (6 / in_features) ** 0.5 / omega_0
        self.weight = nn.Parameter(torch.empty(out_features, in_features).uniform_(-bound, bound))
        self.bias = nn.Parameter(torch.empty(out_features).uniform_(-first_k, first_k))

    def forward(self, x):
        return _Finer.apply(x, self.weight, self.bias, self.omega_0)
