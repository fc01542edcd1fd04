import torch
from torch import nn


class ConcreteDrop(torch.autograd.Function):
    """x * (1 - z) / (1 - p), z the relaxed Bernoulli(p) of the uniform noise u (same shape as x)"""

    @staticmethod
    def forward(ctx, x, p_logit, u, temperature):
        ctx.save_for_backward(x, p_logit, u)
        ctx.t = temperature
        z = torch.sigmoid((p_logit + torch.logit(u)) / temperature)
        return x * (1 - z) * (1 + p_logit.exp())

    @staticmethod
    def backward(ctx, grad):
        x, p_logit, u = ctx.saved_tensors
        z = torch.sigmoid((p_logit + torch.logit(u)) / ctx.t)
        odds = p_logit.exp()
        keep = (1 - z) * (1 + odds)
        gp = None
        if ctx.needs_input_grad[1]:
            gp = (grad * x * (-z * keep / ctx.t)).sum()
        return grad * keep, gp, None, None


class ConcreteDropout(nn.Module):
    def __init__(self, p=0.1, temperature=0.1):
        super().__init__()
        self.temperature = temperature
        self.p_logit = nn.Parameter(torch.logit(torch.tensor(p)))

    def forward(self, x, u=None):
        if not self.training:
            return x
        if u is None:
            u = torch.rand_like(x).clamp(1e-6, 1 - 1e-6)
        return ConcreteDrop.apply(x, self.p_logit, u, self.temperature)
