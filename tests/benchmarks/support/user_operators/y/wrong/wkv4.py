import torch


def _weights(w, u, k):
    """softmax weights [b, t, i, c] of RWKV-4's time mixing, and the ages of the steps"""
    T = k.shape[1]
    t = torch.arange(T, device=k.device)
    age = (t[:, None] - 1 - t[None, :]).to(k.dtype)[None, :, :, None]
    logits = k[:, None] - age * w
    now = torch.eye(T, dtype=torch.bool, device=k.device)[None, :, :, None]
    logits = torch.where(now, (u + k)[:, None], logits)
    logits = logits.masked_fill((t[None, :] > t[:, None])[None, :, :, None], -1e30)
    return logits.softmax(2), age, now


class WKV(torch.autograd.Function):
    # w (C,) decay > 0, u (C,) bonus of the current token, k v (B, T, C)

    @staticmethod
    def forward(ctx, w, u, k, v):
        ctx.save_for_backward(w, u, k, v)
        p, _, _ = _weights(w, u, k)
        return (p * v[:, None]).sum(2)

    @staticmethod
    def backward(ctx, gy):
        w, u, k, v = ctx.saved_tensors
        p, age, now = _weights(w, u, k)
        gv = (p * gy[:, :, None]).sum(1)
        gp = gy[:, :, None] * v[:, None]
        gl = p * (gp - (p * gp).sum(2, keepdim=True))
        gk = gl.sum(1)
        gu = (gl * now).sum((0, 1, 2))
        gw = -(gl * age).sum((0, 1, 2))
        return gw, gu, gk, gv
