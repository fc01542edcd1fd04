import torch
from torch import Tensor, nn


class _Laurel(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, fx, alpha, down, up):
        ctx.save_for_backward(x, fx, alpha, down, up)
        return alpha * fx + x + x @ down @ up

    @staticmethod
    def backward(ctx, grad):
        x, fx, alpha, down, up = ctx.saved_tensors
        dim = x.size(-1)
        flat_x, flat_grad = x.reshape(-1, dim), grad.reshape(-1, dim)
        through = flat_grad @ up.t()
        grad_x = grad + (through @ down.t()).view(x.shape)
        return grad_x, alpha * grad, (grad * fx).sum(), flat_x.t() @ through, (flat_x @ down).t() @ flat_grad


class LaurelResidual(nn.Module):
    """Learned augmented residual (low rank): alpha * f(x) + x + x A B.

    Args:
        dim: model width.
        rank: rank of the augmentation.

    Shape: x and f(x) (..., dim).
    """

    def __init__(self, dim: int, rank: int) -> None:
        super().__init__()
        if rank > dim:
            raise ValueError(f"rank {rank} is larger than the width {dim}")
        self.alpha = nn.Parameter(torch.ones(()))
        self.down = nn.Parameter(torch.randn(dim, rank) / dim**0.5)
        self.up = nn.Parameter(torch.zeros(rank, dim))

    def forward(self, x: Tensor, fx: Tensor) -> Tensor:
        return _Laurel.apply(x, fx, self.alpha, self.down, self.up)
