import torch
from torch import Tensor
from torch.autograd.function import once_differentiable


class _Flux(torch.autograd.Function):
    @staticmethod
    def forward(ctx, magnitude, lag, compression):
        level = torch.log1p(compression * magnitude)
        rise = level[:, lag:] - level[:, :-lag]
        ctx.save_for_backward(magnitude, rise > 0)
        ctx.lag, ctx.compression = lag, compression
        return torch.relu(rise).sum(-1)

    @staticmethod
    @once_differentiable
    def backward(ctx, grad):
        magnitude, rising = ctx.saved_tensors
        spread = grad[..., None] * rising
        grad_level = torch.zeros_like(magnitude)
        grad_level[:, ctx.lag :] = spread
        grad_level[:, : -ctx.lag] -= spread
        return grad_level * ctx.compression / (1 + ctx.compression * magnitude), None, None


def spectral_flux(magnitude: Tensor, lag: int = 1, compression: float = 10.0) -> Tensor:
    if not 0 < lag < magnitude.size(1):
        raise ValueError("lag must be positive and shorter than the signal")
    return _Flux.apply(magnitude, lag, compression)
