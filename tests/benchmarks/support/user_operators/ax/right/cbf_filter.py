import torch
from torch.autograd import Function


class CBFFilter(Function):
    """Closed-form safety filter of one control barrier function.

    argmin_u |u - u_nom|^2  s.t.  psi + Lg @ u >= 0

    u_nom, Lg: (B, m), Lg not zero; psi: (B,), the drift term plus the class-K term.
    """

    @staticmethod
    def forward(ctx, u_nom, Lg, psi):
        ctx.save_for_backward(u_nom, Lg, psi)
        slack = psi + (Lg * u_nom).sum(-1)
        k = (-slack).clamp(min=0) / Lg.pow(2).sum(-1)
        return u_nom + k[:, None] * Lg

    @staticmethod
    def backward(ctx, grad):
        u_nom, Lg, psi = ctx.saved_tensors
        slack = psi + (Lg * u_nom).sum(-1)
        n2 = Lg.pow(2).sum(-1)
        k = (-slack).clamp(min=0) / n2
        along = (grad * Lg).sum(-1) / n2
        g_psi = torch.where(slack < 0, -along, torch.zeros_like(along))
        g_u = grad + g_psi[:, None] * Lg
        g_Lg = k[:, None] * grad + g_psi[:, None] * u_nom - (2 * k * along)[:, None] * Lg
        return g_u, g_Lg, g_psi
