"""Log-Euclidean maps for diffusion tensor images."""
import torch
from torch.autograd.function import once_differentiable


class TensorLog(torch.autograd.Function):
    """Matrix logarithm of symmetric positive definite tensors (..., n, n).

    Only the symmetric part of the input is used.
    """

    @staticmethod
    def forward(ctx, D):
        S = 0.5 * (D + D.transpose(-1, -2))
        lam, V = torch.linalg.eigh(S)
        ctx.save_for_backward(lam, V)
        return (V * lam.log().unsqueeze(-2)) @ V.transpose(-1, -2)

    @staticmethod
    @once_differentiable
    def backward(ctx, G):
        lam, V = ctx.saved_tensors
        num = lam.log().unsqueeze(-1) - lam.log().unsqueeze(-2)
        den = lam.unsqueeze(-1) - lam.unsqueeze(-2)
        same = torch.eye(lam.shape[-1], dtype=torch.bool, device=lam.device)
        K = torch.where(same, 1 / lam.unsqueeze(-1), num / den.masked_fill(same, 1.0))
        G = 0.5 * (G + G.transpose(-1, -2))
        inner = V.transpose(-1, -2) @ G @ V
        return V @ (K * inner) @ V.transpose(-1, -2)
