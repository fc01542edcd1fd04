import torch
from torch.autograd.function import once_differentiable


class ProjectPSD(torch.autograd.Function):
    """Nearest psd matrix (Frobenius) to the symmetric part of A (..., n, n)."""

    @staticmethod
    def forward(ctx, A):
        w, V = torch.linalg.eigh(0.5 * (A + A.mT))
        ctx.save_for_backward(w, V)
        return (V * w.clamp(min=0)[..., None, :]) @ V.mT

    @staticmethod
    @once_differentiable
    def backward(ctx, G):
        w, V = ctx.saved_tensors
        pos = w > 0
        pi, pj = pos[..., :, None], pos[..., None, :]
        wi, wj = w[..., :, None], w[..., None, :]
        gap = wi.clamp(min=0) + wj.clamp(min=0) - wi.clamp(max=0) - wj.clamp(max=0)
        mixed = (wi.clamp(min=0) + wj.clamp(min=0)) / torch.where(pi ^ pj, gap, torch.ones_like(gap))
        K = torch.where(pi & pj, torch.ones_like(gap), torch.where(pi ^ pj, mixed, torch.zeros_like(gap)))
        gS = V @ (K * (V.mT @ G @ V)) @ V.mT
        return 0.5 * (gS + gS.mT)
