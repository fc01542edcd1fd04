import torch
from torch import Tensor


class _IVIM(torch.autograd.Function):
    @staticmethod
    def forward(ctx, s0, fraction, d_star, d, b):
        s0_, f, fast, slow = (p.unsqueeze(-1) for p in (s0, fraction, d_star, d))
        ctx.save_for_backward(s0, fraction, d_star, d, b)
        return s0_ * (f * torch.exp(-b * fast) + (1 - f) * torch.exp(-b * slow))

    @staticmethod
    def backward(ctx, grad_out):
        *maps, b = ctx.saved_tensors
        s0, f, fast, slow = (p.unsqueeze(-1) for p in maps)
        perfusion, tissue = torch.exp(-b * fast), torch.exp(-b * slow)
        grad_s0 = (grad_out * (f * perfusion + (1 - f) * tissue)).sum(-1)
        grad_s = grad_out * s0
        grad_fraction = (grad_s * (perfusion - tissue)).sum(-1)
        grad_fast = (-grad_s * b * f * perfusion).sum(-1)
        grad_slow = (-grad_s * b * (1 - f) * tissue).sum(-1)
        return grad_s0, grad_fraction, grad_fast, grad_slow, None


def ivim_signal(s0: Tensor, fraction: Tensor, d_star: Tensor, d: Tensor, b: Tensor) -> Tensor:
    """Bi-exponential IVIM signal: parameter maps (...) and b-values (Nb,), which are the protocol and
    get no gradient -> (..., Nb).
    """
    if not s0.shape == fraction.shape == d_star.shape == d.shape:
        raise ValueError("the parameter maps must have one shape")
    if b.dim() != 1:
        raise ValueError("b must be one-dimensional")
    return _IVIM.apply(s0, fraction, d_star, d, b)
