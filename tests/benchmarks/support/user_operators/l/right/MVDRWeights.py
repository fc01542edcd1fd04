"""MVDR (Capon) beamformer weights."""
import torch
from torch import Tensor
from torch.autograd import Function


def _loaded(R: Tensor, loading: float) -> Tensor:
    return R + loading * torch.eye(R.size(-1), dtype=R.dtype, device=R.device)


def _solve(A: Tensor, b: Tensor) -> Tensor:
    return torch.linalg.solve(A, b.unsqueeze(-1)).squeeze(-1)


class MVDRWeights(Function):
    """w = u / (d^H u) with u = (R + loading I)^-1 d.

    Args:
        R: (..., M, M) complex spatial covariance, invertible after loading
        d: (..., M) complex steering vector, same batch axes
        loading: diagonal loading, >= 0
    Returns:
        w: (..., M), distortionless: w^H d = 1 when R is Hermitian
    """

    @staticmethod
    def forward(ctx, R: Tensor, d: Tensor, loading: float = 0.0) -> Tensor:
        assert R.is_complex() and d.is_complex()
        ctx.save_for_backward(R, d)
        ctx.loading = loading
        u = _solve(_loaded(R, loading), d)
        return u / (d.conj() * u).sum(-1, keepdim=True)

    @staticmethod
    def backward(ctx, g: Tensor):
        R, d = ctx.saved_tensors
        A = _loaded(R, ctx.loading)
        u = _solve(A, d)
        s = (d.conj() * u).sum(-1, keepdim=True)
        # w = u / s
        gs = -(g * u.conj()).sum(-1, keepdim=True) / s.conj() ** 2
        gu = g / s.conj() + gs * d
        # u = A^-1 d
        v = _solve(A.mH, gu)
        gR = -v.unsqueeze(-1) * u.conj().unsqueeze(-2)
        gd = v + gs.conj() * u
        return gR, gd, None
