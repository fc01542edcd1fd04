import torch
import torch.nn.functional as F
from torch.autograd.function import once_differentiable


class SelectiveScanRef(torch.autograd.Function):
    """Reference of Mamba's selective scan.

    u, delta: (B, D, L)   A: (D, N)   B, C: (B, N, L)   D, delta_bias: (D,) or None
    """

    @staticmethod
    def forward(ctx, u, delta, A, B, C, D=None, delta_bias=None, delta_softplus=False):
        raw = delta if delta_bias is None else delta + delta_bias[:, None]
        dt = F.softplus(raw) if delta_softplus else raw
        h = u.new_zeros(u.shape[0], u.shape[1], A.shape[1])
        states, ys = [h], []
        for t in range(u.shape[2]):
            h = torch.exp(dt[:, :, t, None] * A) * h + (dt[:, :, t] * u[:, :, t])[..., None] * B[:, None, :, t]
            states.append(h)
            ys.append((h * C[:, None, :, t]).sum(-1))
        y = torch.stack(ys, -1)
        if D is not None:
            y = y + D[:, None] * u
        ctx.softplus = delta_softplus
        ctx.save_for_backward(u, raw, dt, A, B, C, D, delta_bias, torch.stack(states))
        return y

    @staticmethod
    @once_differentiable
    def backward(ctx, dy):
        u, raw, dt, A, B, C, D, delta_bias, states = ctx.saved_tensors
        du, ddt = torch.zeros_like(u), torch.zeros_like(u)
        dA, dB, dC = torch.zeros_like(A), torch.zeros_like(B), torch.zeros_like(C)
        dh = torch.zeros_like(states[0])
        for t in reversed(range(u.shape[2])):
            step, ut, Bt = dt[:, :, t, None], u[:, :, t, None], B[:, None, :, t]
            dh = dh + dy[:, :, t, None] * C[:, None, :, t]
            dC[:, :, t] = (states[t + 1] * dy[:, :, t, None]).sum(1)
            decay = torch.exp(step * A)
            dlog = dh * states[t] * decay
            dA += (dlog * step).sum(0)
            dhB = (dh * Bt).sum(-1)
            ddt[:, :, t] = (dlog * A).sum(-1) + dhB * u[:, :, t]
            du[:, :, t] = dhB * dt[:, :, t]
            dB[:, :, t] = (dh * step * ut).sum(1)
            dh = dh * decay
        dD = None
        if D is not None:
            du += D[:, None] * dy
            dD = (dy * u).sum((0, 2))
        if ctx.softplus:
            ddt = ddt * torch.sigmoid(raw)
        dbias = ddt.sum((0, 2)) if delta_bias is not None else None
        return du, ddt, dA, dB, dC, dD, dbias, None
