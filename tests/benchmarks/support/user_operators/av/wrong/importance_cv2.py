import torch
from torch import Tensor


class _ImportanceCV2(torch.autograd.Function):
    @staticmethod
    def forward(ctx, gates: Tensor, eps: float) -> Tensor:
        ctx.eps = eps
        ctx.save_for_backward(gates)
        imp = gates.flatten(0, -2).sum(0)
        if imp.numel() == 1:
            return imp.new_zeros(())
        return imp.var() / (imp.mean() ** 2 + eps)

    @staticmethod
    def backward(ctx, g: Tensor):
        (gates,) = ctx.saved_tensors
        imp = gates.flatten(0, -2).sum(0)
        e = imp.numel()
        if e == 1:
            return torch.zeros_like(gates), None
        m, v = imp.mean(), imp.var()
        den = m**2 + ctx.eps
        d = 2 * (imp - m) / (e * den) - 2 * m * v / (e * den**2)
        return (g * d).expand_as(gates), None


def importance_cv2(gates: Tensor, eps: float = 1e-10) -> Tensor:
    """Squared coefficient of variation of the experts' importance. gates (..., T, E)"""
    return _ImportanceCV2.apply(gates, eps)
