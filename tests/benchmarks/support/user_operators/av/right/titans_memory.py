import torch
from torch import Tensor


def _replay(k: Tensor, v: Tensor, theta: Tensor, eta: Tensor, alpha: Tensor):
    m = s = k.new_zeros(k.size(0), v.size(2), k.size(2))
    states = [(m, s)]
    for t in range(k.size(1)):
        err = (m @ k[:, t, :, None]).squeeze(-1) - v[:, t]
        grad = err[:, :, None] * k[:, t, None]
        s = theta[:, t, None, None] * s - eta[:, t, None, None] * grad
        m = (1 - alpha[:, t, None, None]) * m + s
        states.append((m, s))
    return states


class TitansMemory(torch.autograd.Function):
    """Linear Titans memory: momentum, surprise step and forgetting, read by q after each write.

    q, k (B, T, D), v (B, T, E), theta, eta, alpha (B, T) -> (B, T, E)
    """

    @staticmethod
    def forward(ctx, q: Tensor, k: Tensor, v: Tensor, theta: Tensor, eta: Tensor, alpha: Tensor) -> Tensor:
        ctx.save_for_backward(q, k, v, theta, eta, alpha)
        states = _replay(k, v, theta, eta, alpha)
        return torch.stack([(m @ q[:, t, :, None]).squeeze(-1) for t, (m, _) in enumerate(states[1:])], 1)

    @staticmethod
    def backward(ctx, g: Tensor):
        q, k, v, theta, eta, alpha = ctx.saved_tensors
        states = _replay(k, v, theta, eta, alpha)
        dm = ds = torch.zeros_like(states[0][0])
        grads = []
        for t in reversed(range(k.size(1))):
            (m0, s0), (m1, _) = states[t], states[t + 1]
            kt, et = k[:, t], eta[:, t, None, None]
            err = (m0 @ kt[..., None]).squeeze(-1) - v[:, t]
            dq = (m1.mT @ g[:, t, :, None]).squeeze(-1)
            dm = dm + g[:, t, :, None] * q[:, t, None]
            ds = ds + dm
            dalpha = -(dm * m0).sum((1, 2))
            dtheta = (ds * s0).sum((1, 2))
            deta = -(ds * err[:, :, None] * kt[:, None]).sum((1, 2))
            dgrad = -et * ds
            derr = (dgrad @ kt[..., None]).squeeze(-1)
            dk = (dgrad.mT @ err[..., None]).squeeze(-1) + (m0.mT @ derr[..., None]).squeeze(-1)
            dm = (1 - alpha[:, t, None, None]) * dm + derr[:, :, None] * kt[:, None]
            ds = theta[:, t, None, None] * ds
            grads.append((dq, dk, -derr, dtheta, deta, dalpha))
        return tuple(torch.stack(d, 1) for d in zip(*grads[::-1]))
