import torch
from torch import Tensor


def frechet(A: Tensor, E: Tensor) -> Tensor:
    """Frechet derivative of exp at A in the direction E, by the 2n x 2n block matrix."""
    n = A.shape[-1]
    top = torch.cat([A, E], dim=-1)
    bottom = torch.cat([torch.zeros_like(A), A], dim=-1)
    return torch.linalg.matrix_exp(torch.cat([top, bottom], dim=-2))[..., :n, n:]


class MatrixExp(torch.autograd.Function):
    """exp(t A) for a batch of square matrices, t a python float."""

    @staticmethod
    def forward(ctx, A: Tensor, t: float = 1.0) -> Tensor:
        ctx.save_for_backward(A)
        ctx.t = t
        return torch.linalg.matrix_exp(t * A)

    @staticmethod
    def backward(ctx, grad: Tensor):
        A = ctx.saved_tensors[0].detach()
        tA = ctx.t * A.mT
        return ctx.t * frechet(tA, grad), None
