import torch
from torch import Tensor


class LonghornScan(torch.autograd.Function):
    """Longhorn's closed-form online-regression recurrence.

    S_t = (1 - d_t k_t^2) * S_{t-1} + d_t x_t k_t, d = beta / (1 + beta |k|^2), out = S q.
    x, beta (B, T, D) with beta in (0, 1), k, q (B, T, N)
    """

    @staticmethod
    def forward(ctx, x: Tensor, beta: Tensor, k: Tensor, q: Tensor) -> Tensor:
        ctx.save_for_backward(x, beta, k, q)
        states = LonghornScan._states(x, beta, k)
        return torch.einsum("btdn,btn->btd", torch.stack(states[1:], 1), q)

    @staticmethod
    def _states(x: Tensor, beta: Tensor, k: Tensor) -> list[Tensor]:
        d = beta / (1 + beta * k.square().sum(-1, keepdim=True))
        s = x.new_zeros(x.size(0), x.size(2), k.size(2))
        states = [s]
        for t in range(x.size(1)):
            dt, kt = d[:, t, :, None], k[:, t, None]
            s = (1 - dt * kt * kt) * s + dt * x[:, t, :, None] * kt
            states.append(s)
        return states

    @staticmethod
    def backward(ctx, g: Tensor):
        x, beta, k, q = ctx.saved_tensors
        states = LonghornScan._states(x, beta, k)
        kk = k.square().sum(-1, keepdim=True)
        d = beta / (1 + beta * kk)
        dq = torch.einsum("btdn,btd->btn", torch.stack(states[1:], 1), g)
        ds = torch.zeros_like(states[0])
        dx, dd, dk = [], [], []
        for t in reversed(range(x.size(1))):
            dt, kt, xt, prev = d[:, t, :, None], k[:, t, None], x[:, t, :, None], states[t]
            ds = ds + g[:, t, :, None] * q[:, t, None]
            dx.append((ds * dt * kt).sum(2))
            dd.append((ds * (xt * kt - kt * kt * prev)).sum(2))
            dk.append((ds * dt * (xt - 2 * kt * prev)).sum(1))
            ds = ds * (1 - dt * kt * kt)
        dx, dd, dk = (torch.stack(v[::-1], 1) for v in (dx, dd, dk))
        dbeta = dd / (1 + beta * kk) ** 2
        dk = dk - 2 * k * (dd * d * d).sum(-1, keepdim=True)
        return dx, dbeta, dk, dq
