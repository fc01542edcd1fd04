import torch
from torch import Tensor


class _GeodesicAngle(torch.autograd.Function):
    @staticmethod
    def forward(ctx, R1: Tensor, R2: Tensor, eps: float) -> Tensor:
        ctx.save_for_backward(R1, R2)
        ctx.eps = eps
        cos = ((R1 * R2).sum((-2, -1)) - 1) / 2
        return torch.acos(cos.clamp(-1 + eps, 1 - eps))

    @staticmethod
    def backward(ctx, grad_output):
        R1, R2 = ctx.saved_tensors
        cos = ((R1 * R2).sum((-2, -1)) - 1) / 2
        lim = 1 - ctx.eps
        inside = cos.abs() < lim
        cos = cos.clamp(-lim, lim)
        g = -0.5 * grad_output * inside / torch.sqrt(1 - cos * cos)
        g = g[..., None, None]
        return g * R2, g * R1, None


def geodesic_distance(R1: Tensor, R2: Tensor, eps: float = 1e-6) -> Tensor:
    """Angle of the relative rotation R1^T R2, (..., 3, 3) -> (...); no gradient at (nearly) 0 and pi."""
    return _GeodesicAngle.apply(R1, R2, eps)
