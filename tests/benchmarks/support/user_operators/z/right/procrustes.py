import torch
from torch.autograd.function import once_differentiable


class ProcrustesRotation(torch.autograd.Function):
    """Nearest rotation (special orthogonal Procrustes) of each 3x3 matrix in a batch."""

    @staticmethod
    def forward(ctx, M):
        U, s, Vh = torch.linalg.svd(M)
        det = torch.linalg.det(U @ Vh).round()
        sign = torch.ones_like(s)
        sign[..., -1] = det
        U = U * sign.unsqueeze(-2)
        ctx.save_for_backward(U, s * sign, Vh)
        return U @ Vh

    @staticmethod
    @once_differentiable
    def backward(ctx, grad):
        U, s, Vh = ctx.saved_tensors
        H = U.mT @ grad @ Vh.mT
        denom = s.unsqueeze(-1) + s.unsqueeze(-2)
        eye = torch.eye(s.shape[-1], dtype=torch.bool, device=s.device)
        denom = denom.masked_fill(eye, 1.0)
        return U @ ((H - H.mT) / denom) @ Vh
