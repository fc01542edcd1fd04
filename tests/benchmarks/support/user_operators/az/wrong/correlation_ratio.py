import torch
from torch import Tensor, nn


class _CorrelationRatio(torch.autograd.Function):
    @staticmethod
    def forward(ctx, moving, weight, eps):
        mass = weight.sum(-1).clamp(min=eps)
        mean = (weight * moving[:, None]).sum(-1) / mass
        centered = moving - moving.mean(-1, keepdim=True)
        between = (mass * (mean - moving.mean(-1, keepdim=True)) ** 2).sum(-1)
        ctx.save_for_backward(moving, weight)
        ctx.eps = eps
        return between / (centered.square().sum(-1) + eps)

    @staticmethod
    def backward(ctx, grad):
        moving, weight = ctx.saved_tensors
        mass = weight.sum(-1)
        mean = (weight * moving[:, None]).sum(-1) / mass
        overall = moving.mean(-1, keepdim=True)
        between = (mass * (mean - overall) ** 2).sum(-1)
        total = (moving - overall).square().sum(-1) + ctx.eps
        pull = mass * (mean - overall)
        grad_between = 2 * ((pull / mass)[..., None] * weight).sum(1) - 2 * pull.sum(-1, keepdim=True) / moving.size(-1)
        ratio = (between / total)[:, None]
        grad_moving = (grad_between - 2 * ratio * (moving - overall)) / total[:, None]
        return grad[:, None] * grad_moving, None, None


class CorrelationRatio(nn.Module):
    """Correlation ratio of a moving image given a fixed one, with linear (hat) bins.

    Args:
        bins: number of bins over [low, high].
        low, high: range of the fixed image's intensities; what lies outside goes to the outer bins.
        eps: floor of the bin masses and of the variance.

    fixed, moving: (B, N) intensities -> (B,). Differentiable in moving only.
    """

    def __init__(self, bins: int = 8, low: float = 0.0, high: float = 1.0, eps: float = 1e-6) -> None:
        super().__init__()
        if bins < 2 or high <= low:
            raise ValueError("needs two bins and a range")
        self.bins, self.low, self.high, self.eps = bins, low, high, eps

    def forward(self, fixed: Tensor, moving: Tensor) -> Tensor:
        assert fixed.shape == moving.shape
        position = ((fixed.detach() - self.low) / (self.high - self.low)).clamp(0, 1) * (self.bins - 1)
        center = torch.arange(self.bins, dtype=fixed.dtype, device=fixed.device)
        weight = (1 - (position[:, None] - center[:, None]).abs()).clamp(min=0)
        return _CorrelationRatio.apply(moving, weight, self.eps)
