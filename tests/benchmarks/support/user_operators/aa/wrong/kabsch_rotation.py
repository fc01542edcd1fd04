import torch
from torch import Tensor
from torch.autograd.function import once_differentiable


class NearestRotation(torch.autograd.Function):
    """Special orthogonal Procrustes: the rotation nearest to M, (..., n, n) -> (..., n, n).

    M = U S V^T, R = U diag(1, .., det(U V^T)) V^T. The two smallest singular values should differ when det M < 0.
    """

    @staticmethod
    def forward(ctx, M: Tensor) -> Tensor:
        U, S, Vh = torch.linalg.svd(M)
        sign = torch.ones_like(S)
        sign[..., -1] = torch.linalg.det(U @ Vh).sign()
        SV = sign.unsqueeze(-1) * Vh
        ctx.save_for_backward(U, S, SV)
        return U @ SV

    @staticmethod
    @once_differentiable
    def backward(ctx, G: Tensor):
        U, S, Vh = ctx.saved_tensors
        B = U.mT @ G @ Vh.mT
        pair = S.unsqueeze(-1) + S.unsqueeze(-2)
        eye = torch.eye(S.shape[-1], dtype=torch.bool, device=S.device)
        W = (B - B.mT) / pair.masked_fill(eye, 1.0)
        return U @ W @ Vh
