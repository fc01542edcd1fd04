import torch
from torch import Tensor
from torch.autograd import Function

EPS = 1e-12


def _unit(x: Tensor) -> tuple[Tensor, Tensor]:
    n = x.norm(dim=-1, keepdim=True).clamp_min(EPS)
    return x / n, n


class XCA(Function):
    """Cross-covariance attention (XCiT): channels attend to channels.

    q, k, v (B, H, D, N), temperature (H,)."""

    @staticmethod
    def forward(ctx, q, k, v, temperature):
        ctx.save_for_backward(q, k, v, temperature)
        qn, kn = _unit(q)[0], _unit(k)[0]
        attn = (qn @ kn.mT * temperature[:, None, None]).softmax(-1)
        return attn @ v

    @staticmethod
    def backward(ctx, g):
        q, k, v, temperature = ctx.saved_tensors
        (qn, q_len), (kn, k_len) = _unit(q), _unit(k)
        tau = temperature[:, None, None]
        sim = qn @ kn.mT * tau
        attn = sim.softmax(-1)
        dv = attn.mT @ g
        da = g @ v.mT
        ds = attn * (da - (da * attn).sum(-1, keepdim=True))
        dt = (ds * sim).sum((0, 2, 3))
        ds = ds * tau
        dqn, dkn = ds @ kn, ds.mT @ qn
        dq = (dqn - qn * (qn * dqn).sum(-1, keepdim=True)) / q_len
        dk = (dkn - kn * (kn * dkn).sum(-1, keepdim=True)) / k_len
        return dq, dk, dv, dt
