import torch


class _Projection(torch.autograd.Function):
    @staticmethod
    def forward(p1, p2, w1, w2, rest, compliance, dt):
        d = p1 - p2
        length = d.norm(dim=-1)
        lam = -(length - rest) / (w1 + w2 + compliance / dt ** 2)
        push = (lam / length)[:, None] * d
        return p1 + w1[:, None] * push, p2 - w2[:, None] * push

    @staticmethod
    def setup_context(ctx, inputs, output):
        *tensors, ctx.dt = inputs
        ctx.save_for_backward(*tensors)

    @staticmethod
    def backward(ctx, g1, g2):
        p1, p2, w1, w2, rest, compliance = ctx.saved_tensors
        d = p1 - p2
        length = d.norm(dim=-1)
        n = d / length[:, None]
        S = w1 + w2 + compliance / ctx.dt ** 2
        C = length - rest
        lam = -C / S
        h = w1[:, None] * g1 - w2[:, None] * g2
        hn = (h * n).sum(-1)
        dC = -hn / S
        dS = hn * C / S ** 2
        dd = dC[:, None] * n + (lam / length)[:, None] * (h - hn[:, None] * n)
        dw1 = dS + lam * (g1 * n).sum(-1)
        dw2 = dS - lam * (g2 * n).sum(-1)
        return g1 + dd, g2 - dd, dw1, dw2, -dC, dS / ctx.dt, None


def xpbd_distance(p1, p2, w1, w2, rest, compliance, dt=1 / 60):
    """One XPBD projection of E independent distance constraints.

    p1, p2 (E, 3) end points, w1, w2 (E,) inverse masses, rest (E,), compliance (E,)
    returns the corrected end points
    """
    return _Projection.apply(p1, p2, w1, w2, rest, compliance, dt)
