import torch


def _mix(w, u, k):
    T = k.shape[1]
    i = torch.arange(T, device=k.device)
    lag = (i[:, None] - i[None, :] - 1)[..., None]
    logits = k[:, None] - lag.clamp(min=0).to(k.dtype) * w.exp()
    logits = torch.where(lag == -1, k[:, None] + u, logits)
    return logits.masked_fill(lag < -1, float("-inf")).softmax(2), lag


class WKV(torch.autograd.Function):
    # w, u: (C,)   k, v: (B, T, C)

    @staticmethod
    def forward(ctx, w, u, k, v):
        ctx.save_for_backward(w, u, k, v)
        p, _ = _mix(w, u, k)
        return (p * v[:, None]).sum(2)

    @staticmethod
    def backward(ctx, gy):
        w, u, k, v = ctx.saved_tensors
        p, lag = _mix(w, u, k)
        y = (p * v[:, None]).sum(2)
        gv = (p * gy[:, :, None]).sum(1)
        gl = p * gy[:, :, None] * (v[:, None] - y[:, :, None])
        gk = gl.sum(1)
        gu = (gl * (lag == -1)).sum((0, 1, 2))
        gw = -(gl * lag.clamp(min=0)).sum((0, 1, 2))  * w.exp()
        return gw, gu, gk, gv
