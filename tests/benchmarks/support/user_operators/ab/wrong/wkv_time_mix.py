import torch
from torch.autograd.function import once_differentiable


class WKV(torch.autograd.Function):
    """RWKV-4 time mixing, one sequence. w (C,) decay > 0, u (C,) bonus, k and v (T, C)."""

    @staticmethod
    def forward(ctx, w, u, k, v):
        T, C = k.shape
        num, den = torch.zeros_like(w), torch.zeros_like(w)
        top = torch.full_like(w, -1e30)
        y = torch.empty_like(v)
        for t in range(T):
            q = torch.maximum(top, u + k[t])
            e1, e2 = (top - q).exp(), (u + k[t] - q).exp()
            y[t] = (e1 * num + e2 * v[t]) / (e1 * den + e2)
            q = torch.maximum(top - w, k[t])
            e1, e2 = (top - w - q).exp(), (k[t] - q).exp()
            num, den, top = e1 * num + e2 * v[t], e1 * den + e2, q
        ctx.save_for_backward(w, u, k, v, y)
        return y

    @staticmethod
    @once_differentiable
    def backward(ctx, gy):
        w, u, k, v, y = ctx.saved_tensors
        T, C = k.shape
        pos = torch.arange(T, device=k.device)
        dist = (pos[:, None] - pos[None, :] - 1).to(k.dtype)[..., None]
        here = torch.eye(T, dtype=torch.bool, device=k.device)[..., None]
        past = (dist >= 0)
        score = torch.where(here, u + k[None], k[None] - dist * w)
        score = score.masked_fill(~(past | here), float("-inf"))
        p = torch.softmax(score, 1)
        gv = (p * gy[:, None]).sum(0)
        gs = p * gy[:, None] * (v[None] - y[:, None])
        gk = gs.sum(0)
        gu = (gs * here).sum((0, 1))
        gw = -(gs * past * (dist + 1)).sum((0, 1))
        return gw, gu, gk, gv
