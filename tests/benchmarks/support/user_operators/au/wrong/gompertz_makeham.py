import torch
from torch import nn


class _LifeNLL(torch.autograd.Function):
    @staticmethod
    def forward(ctx, age, years, died, a, b, gam):
        ctx.save_for_backward(age, years, died, a, b, gam)
        start, end = torch.exp(gam * age), torch.exp(gam * (age + years))
        hazard = a + b * end
        return (a * years + b * (end - start) / gam - torch.where(died, torch.log(hazard), torch.zeros_like(hazard))).sum()

    @staticmethod
    def backward(ctx, g):
        age, years, died, a, b, gam = ctx.saved_tensors
        last = age + years
        start, end = torch.exp(gam * age), torch.exp(gam * last)
        hazard = a + b * end
        d = died.to(hazard.dtype) / hazard
        g_age = g * (b * (end - start) - d * b * gam * end)
        g_years = g * (hazard - d * b * gam * end)
        g_a = g * (years - d).sum()
        g_b = g * ((end - start) / gam - d * end).sum()
        g_gam = g * (b * (last * end - age * start) / gam - b * (end - start) / gam**2 - d * b * years * end).sum()
        return g_age, g_years, None, g_a, g_b, g_gam


class GompertzMakeham(nn.Module):
    """Negative log-likelihood of lives under mu(x) = A + B exp(gamma x).

    age (N,) at entry and years (N,) observed, in decades; died (N,) bool.
    """

    def __init__(self, a=0.1, b=0.05, gamma=0.9):
        super().__init__()
        self.a = nn.Parameter(torch.tensor(a))
        self.b = nn.Parameter(torch.tensor(b))
        self.gamma = nn.Parameter(torch.tensor(gamma))

    def forward(self, age, years, died):
        return _LifeNLL.apply(age, years, died, self.a, self.b, self.gamma)
