import torch
from torch import Tensor
from torch.autograd import Function


def _phi(x: Tensor, omega: Tensor) -> Tensor:
    return torch.exp(x @ omega.T - 0.5 * x.square().sum(-1, keepdim=True)) / omega.size(0) ** 0.5


def _phi_vjp(x: Tensor, omega: Tensor, phi: Tensor, dphi: Tensor) -> tuple[Tensor, Tensor]:
    t = phi * dphi
    dx = t @ omega - x * t.sum(-1, keepdim=True)
    return dx, torch.einsum("bnm,bnd->md", t, x)


class FavorAttention(Function):
    """Bidirectional FAVOR+ attention with positive features, features recomputed in backward.

    q (B, N, D), k (B, S, D), v (B, S, E), omega (M, D)."""

    @staticmethod
    def forward(ctx, q: Tensor, k: Tensor, v: Tensor, omega: Tensor) -> Tensor:
        ctx.save_for_backward(q, k, v, omega)
        fq, fk = _phi(q, omega), _phi(k, omega)
        num = fq @ (fk.mT @ v)
        den = fq @ fk.sum(1).unsqueeze(-1)
        return num / den

    @staticmethod
    def backward(ctx, g: Tensor):
        q, k, v, omega = ctx.saved_tensors
        fq, fk = _phi(q, omega), _phi(k, omega)
        state = fk.mT @ v
        z = fk.sum(1).unsqueeze(-1)
        den = fq @ z
        out = fq @ state / den
        dnum = g / den
        dden = -(g * out).sum(-1, keepdim=True) / den
        dfq = dnum @ state.mT + dden @ z.mT
        dstate = fq.mT @ dnum
        dz = fq.mT @ dden
        dfk = v @ dstate.mT + dz.mT
        dq, dw_q = _phi_vjp(q, omega, fq, dfq)
        dk, dw_k = _phi_vjp(k, omega, fk, dfk)
        return dq, dk, fk @ dstate, dw_q + dw_k
