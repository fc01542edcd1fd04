import torch
from torch import Tensor


def _qmul(a: Tensor, b: Tensor) -> Tensor:
    aw, ax, ay, az = a.unbind(-1)
    bw, bx, by, bz = b.unbind(-1)
    return torch.stack([
        aw * bw - ax * bx - ay * by - az * bz,
        aw * bx + ax * bw + ay * bz - az * by,
        aw * by - ax * bz + ay * bw + az * bx,
        aw * bz + ax * by - ay * bx + az * bw,
    ], dim=-1)


def _qconj(q: Tensor) -> Tensor:
    return torch.cat([q[..., :1], -q[..., 1:]], dim=-1)


class QuaternionIntegrate(torch.autograd.Function):
    @staticmethod
    def forward(ctx, q, omega, dt):
        n = omega.norm(dim=-1, keepdim=True)
        half = 0.5 * dt * n
        s = 0.5 * dt * torch.sinc(half / torch.pi)
        dq = torch.cat([half.cos(), s * omega], dim=-1)
        ctx.save_for_backward(q, omega)
        ctx.dt = dt
        return _qmul(q, dq)

    @staticmethod
    def backward(ctx, grad):
        q, omega = ctx.saved_tensors
        h = 0.5 * ctx.dt
        n = omega.norm(dim=-1, keepdim=True)
        s = torch.sin(h * n) / n
        # (ds/dn) / n
        k = (h * n * torch.cos(h * n) - torch.sin(h * n)) / n ** 3
        c = torch.cos(h * n)
        dq = torch.cat([c, s * omega], dim=-1)
        grad_q = _qmul(grad, _qconj(dq))
        grad_dq = _qmul(_qconj(q), grad)
        gw, gv = grad_dq[..., :1], grad_dq[..., 1:]
        grad_omega = gv * s + omega * (k * (gv * omega).sum(-1, keepdim=True) - h * gw * s)
        return grad_q, grad_omega, None
