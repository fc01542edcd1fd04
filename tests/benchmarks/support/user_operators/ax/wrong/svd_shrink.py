import torch
from torch.autograd.function import once_differentiable


class SVDShrink(torch.autograd.Function):
    """Prox of ``tau * nuclear norm``: soft-thresholds the singular values.

    Args are a matrix ``(..., m, n)`` and a 0-dim tensor ``tau >= 0``.
    """

    @staticmethod
    def forward(ctx, mat, tau):
        U, S, Vh = torch.linalg.svd(mat, full_matrices=False)
        ctx.save_for_backward(U, S, Vh, tau)
        return (U * (S - tau).clamp(min=0)[..., None, :]) @ Vh

    @staticmethod
    @once_differentiable
    def backward(ctx, grad):
        U, S, Vh, tau = ctx.saved_tensors
        Ut, V = U.mT, Vh.mT
        tiny = torch.finfo(S.dtype).tiny
        f = (S - tau).clamp(min=0)
        slope = (S > tau).to(S.dtype)
        core = Ut @ grad @ V
        sym, skew = (core + core.mT) / 2, (core - core.mT) / 2

        si, sj = S[..., :, None], S[..., None, :]
        fi, fj = f[..., :, None], f[..., None, :]
        gap = si - sj
        tied = gap.abs() <= 1e-9 * S.amax(-1)[..., None, None]
        even = torch.where(tied, slope[..., :, None].expand_as(gap), (fi - fj) / torch.where(tied, torch.ones_like(gap), gap))
        odd = (fi + fj) / (si + sj).clamp(min=tiny)

        ratio = f / S.clamp(min=tiny)
        inner = U @ (even * sym + even * skew) @ Vh
        left = ((grad @ V - U @ core) * ratio[..., None, :]) @ Vh
        right = U @ (ratio[..., :, None] * (Ut @ grad - core @ Vh))
        d_tau = -(core.diagonal(dim1=-2, dim2=-1) * slope).sum()
        return inner + left + right, d_tau
