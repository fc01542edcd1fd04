import torch
from torch.autograd.function import once_differentiable

__all__ = ["NWDLoss"]


class NWDLoss(torch.autograd.Function):
    """Normalised Gaussian Wasserstein distance of tiny boxes (cx, cy, w, h), arXiv 2110.13389."""

    @staticmethod
    def forward(ctx, pred: torch.Tensor, target: torch.Tensor, constant: float = 12.8) -> torch.Tensor:
        scale = pred.new_tensor([1.0, 1.0, 0.25, 0.25])
        diff = pred - target
        dist = (diff.square() * scale).sum(-1).sqrt()
        nwd = torch.exp(-dist / constant)
        ctx.save_for_backward(diff * scale, dist, nwd)
        ctx.constant = constant
        return 1 - nwd

    @staticmethod
    @once_differentiable
    def backward(ctx, grad_output):
        direction, dist, nwd = ctx.saved_tensors
        coef = grad_output * nwd / ctx.constant
        unit = direction / dist[..., None]
        grad = coef[..., None] * unit
        return grad, (-grad if ctx.needs_input_grad[1] else None), None
