import math

import torch
from torch import Tensor, nn


class _SpectralRisk(torch.autograd.Function):
    @staticmethod
    def forward(ctx, losses, spectrum, dim):
        ordered, order = losses.sort(dim=dim, descending=True, stable=True)
        shape = [1] * losses.dim()
        shape[dim] = -1
        weight = spectrum.to(losses.dtype).view(shape)
        ctx.save_for_backward(order, weight)
        ctx.dim = dim
        return (ordered * weight).sum(dim)

    @staticmethod
    def backward(ctx, grad):
        order, weight = ctx.saved_tensors
        spread = grad.unsqueeze(ctx.dim) * weight
        return spread.gather(ctx.dim, order), None, None


class SpectralRisk(nn.Module):
    """Spectral risk measure with the exponential spectrum, over scenarios along ``dim``.

    Args:
        aversion: risk aversion, positive.
        dim: dimension of the scenarios.
    """

    def __init__(self, aversion: float = 5.0, dim: int = -1) -> None:
        super().__init__()
        if aversion <= 0:
            raise ValueError("aversion must be positive")
        self.aversion = aversion
        self.dim = dim

    def spectrum(self, n: int) -> Tensor:
        edges = torch.linspace(0, 1, n + 1, dtype=torch.float64)
        cdf = -torch.expm1(-self.aversion * edges) / -math.expm1(-self.aversion)
        return cdf.diff()

    def forward(self, losses: Tensor) -> Tensor:
        weights = self.spectrum(losses.size(self.dim)).to(losses.device)
        return _SpectralRisk.apply(losses, weights, self.dim)
