import torch


def _weights(w, u, k):
    T = k.shape[-2]
    pos = torch.arange(T, device=k.device)
    gap = (pos[:, None] - pos[None, :] - 1).to(k.dtype)[..., None]
    logits = torch.where(gap < 0, u, -gap * w) + k.unsqueeze(-3)
    logits = logits.masked_fill(gap < -1, float("-inf"))
    return torch.softmax(logits, -2), gap.clamp(min=0)


class WKV(torch.autograd.Function):
    """RWKV-4 time mixing (reference implementation, O(T^2)).

    w: (C,) positive decay, u: (C,) bonus of the current token, k, v: (B, T, C)
    """

    @staticmethod
    def forward(ctx, w, u, k, v):
        p, _ = _weights(w, u, k)
        y = (p * v.unsqueeze(-3)).sum(-2)
        ctx.save_for_backward(w, u, k, v)
        return y

    @staticmethod
    def backward(ctx, gy):
        w, u, k, v = ctx.saved_tensors
        p, gap = _weights(w, u, k)
        y = (p * v.unsqueeze(-3)).sum(-2)
        gl = p * gy.unsqueeze(-2) * (v.unsqueeze(-3) - y.unsqueeze(-2))
        gv = (p * gy.unsqueeze(-2)).sum(-3)
        gk = gl.sum(-3)
        gu = gl.diagonal(dim1=-3, dim2=-2).sum((0, -1))
        gw = -(gl * gap).sum((0, 1, 2))
        return gw, gu, gk, gv
