import torch
from torch.autograd.function import once_differentiable


def _sym(x):
    return 0.5 * (x + x.mT)


def _eigpow(x, power):
    lam, v = torch.linalg.eigh(x)
    return (v * lam.clamp(min=1e-12).pow(power).unsqueeze(-2)) @ v.mT


class BuresWasserstein(torch.autograd.Function):
    """Squared 2-Wasserstein distance of N(m1, A) and N(m2, B); A, B (n, n) positive definite."""

    @staticmethod
    def forward(ctx, m1, A, m2, B):
        A, B = _sym(A), _sym(B)
        rA = _eigpow(A, 0.5)
        cross = _eigpow(rA @ B @ rA, 0.5)
        ctx.save_for_backward(m1, m2, A, cross)
        return (m1 - m2).square().sum() + (A + B - 2 * cross).diagonal().sum()

    @staticmethod
    @once_differentiable
    def backward(ctx, g):
        m1, m2, A, cross = ctx.saved_tensors
        iA = _eigpow(A, -0.5)
        T = iA @ cross @ iA
        eye = torch.eye(A.size(-1), dtype=A.dtype, device=A.device)
        gm = 2 * g * (m1 - m2)
        return gm, g * _sym(eye - torch.linalg.inv(T)), -gm, g * _sym(eye - T)
