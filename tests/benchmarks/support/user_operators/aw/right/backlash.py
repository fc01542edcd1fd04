import torch
from torch.autograd import Function


class _Play(Function):
    @staticmethod
    def _run(u, w, y0):
        y, ys = y0, []
        for t in range(u.shape[1]):
            y = torch.minimum(torch.maximum(y, u[:, t] - w), u[:, t] + w)
            ys.append(y)
        return torch.stack(ys, 1)

    @staticmethod
    def forward(ctx, u, w, y0):
        y = _Play._run(u, w, y0)
        ctx.save_for_backward(u, w, y0)
        return y

    @staticmethod
    def backward(ctx, gy):
        u, w, y0 = ctx.saved_tensors
        y = _Play._run(u, w, y0)
        prev = torch.cat([y0[:, None], y[:, :-1]], 1)
        pushed = prev < u - w[:, None]
        pulled = prev > u + w[:, None]
        carry = torch.zeros_like(y0)
        gw = torch.zeros_like(w)
        gu = []
        for t in reversed(range(u.shape[1])):
            lam = gy[:, t] + carry
            moved = pushed[:, t] | pulled[:, t]
            gu.append(lam * moved)
            gw = gw + lam * pulled[:, t] - lam * pushed[:, t]
            carry = lam * ~moved
        return torch.stack(gu[::-1], 1), gw, carry


def backlash(u, w, y0):
    """Play operator. u (B, T) input, w (B,) half gap, y0 (B,) start -> (B, T)."""
    return _Play.apply(u, w, y0)
