import torch
import torch.nn as nn
import torch.nn.functional as F


class LocalReparam(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, mu, rho, noise):
        sigma = F.softplus(rho)
        std = torch.sqrt(x.square() @ sigma.square().t() + 1e-8)
        ctx.save_for_backward(x, mu, rho, noise)
        return x @ mu.t() + std * noise

    @staticmethod
    def backward(ctx, g):
        x, mu, rho, noise = ctx.saved_tensors
        sigma = F.softplus(rho)
        std = torch.sqrt(x.square() @ sigma.square().t() + 1e-8)
        dvar = g * noise / (2 * std)
        dx = g @ mu + x * (dvar @ sigma.square())
        dmu = g.t() @ x
        dsigma = 2 * sigma * (dvar.t() @ x.square())
        return dx, dmu, dsigma * torch.sigmoid(rho), g * std


class BayesLinear(nn.Module):
    """Mean-field Gaussian layer sampled with the local reparameterisation trick; x (B, in), noise (B, out)"""

    def __init__(self, in_features, out_features, rho_init=-3.0):
        super().__init__()
        self.mu = nn.Parameter(torch.empty(out_features, in_features).normal_(std=in_features ** -0.5))
        self.rho = nn.Parameter(torch.full((out_features, in_features), rho_init))

    def forward(self, x, noise=None):
        if noise is None:
            noise = torch.randn(x.size(0), self.mu.size(0), dtype=x.dtype, device=x.device)
        return LocalReparam.apply(x, self.mu, self.rho, noise)
