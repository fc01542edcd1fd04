import torch


class CBFFilter(torch.autograd.Function):
    """Closed-form safety filter: nearest u to u_nom with a.u + b >= 0.

    u_nom (B, m), a (B, m) non-zero, b (B,) -> (B, m)
    """

    @staticmethod
    def forward(ctx, u_nom, a, b):
        ctx.save_for_backward(u_nom, a, b)
        s = -((a * u_nom).sum(-1) + b)
        lam = s.clamp(min=0) / (a * a).sum(-1)
        return u_nom + lam.unsqueeze(-1) * a

    @staticmethod
    def backward(ctx, g):
        u_nom, a, b = ctx.saved_tensors
        s = -((a * u_nom).sum(-1) + b)
        n = (a * a).sum(-1)
        lam = (s.clamp(min=0) / n).unsqueeze(-1)
        along = (g * a).sum(-1) / n
        active = along * (s > 0)
        gu = g - active.unsqueeze(-1) * a
        ga = lam * g - active.unsqueeze(-1) * u_nom - 2 * lam * along.unsqueeze(-1) * a
        return gu, ga, -active
