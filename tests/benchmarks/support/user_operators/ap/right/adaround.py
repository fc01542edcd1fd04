import torch

ZETA, GAMMA = 1.1, -0.1


def rect_sigmoid(v):
    return (torch.sigmoid(v) * (ZETA - GAMMA) + GAMMA).clamp(0, 1)


class AdaRound(torch.autograd.Function):
    """s * clamp(floor(w / s) + h(v), qmin, qmax).

    w, v: (out, in); scale: (out, 1). w is frozen (no gradient); its integer part is constant.
    """

    @staticmethod
    def forward(ctx, w, v, scale, qmin, qmax):
        q = torch.floor(w / scale) + rect_sigmoid(v)
        ctx.save_for_backward(w, v, scale)
        ctx.range = qmin, qmax
        return scale * q.clamp(qmin, qmax)

    @staticmethod
    def backward(ctx, grad):
        w, v, scale = ctx.saved_tensors
        lo, hi = ctx.range
        sig = torch.sigmoid(v)
        raw = sig * (ZETA - GAMMA) + GAMMA
        q = torch.floor(w / scale) + raw.clamp(0, 1)
        inside = (q >= lo) & (q <= hi)
        soft = (raw > 0) & (raw < 1)
        gv = grad * scale * (inside & soft) * (ZETA - GAMMA) * sig * (1 - sig)
        gs = (grad * q.clamp(lo, hi)).sum(1, keepdim=True)
        return None, gv, gs, None, None
