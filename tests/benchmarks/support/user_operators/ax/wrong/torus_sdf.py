import torch


def _unit(p, axis="z"):
    e = p.new_zeros(3)
    e["xyz".index(axis)] = 1
    return e


class TorusSDF(torch.autograd.Function):
    """Signed distance to a torus around an axis of coordinates ("x", "y" or "z").

    p (..., 3), neither on the axis nor on the core circle; major > minor > 0, 0-dim tensors.
    """

    @staticmethod
    def forward(ctx, p, major, minor, axis="z"):
        ctx.save_for_backward(p, major, minor)
        ctx.axis = axis
        e = _unit(p, axis)
        rho = (p * (1 - e)).norm(dim=-1)
        return torch.hypot(rho - major, (p * e).sum(-1)) - minor

    @staticmethod
    def backward(ctx, grad):
        p, major, minor = ctx.saved_tensors
        e = _unit(p)
        flat = p * (1 - e)
        rho = flat.norm(dim=-1)
        q, h = rho - major, (p * e).sum(-1)
        length = torch.sqrt(q**2 + h**2)
        gq = grad * q / length
        g_p = (gq / rho)[..., None] * flat + (grad * h / length)[..., None] * e
        return g_p, -gq.sum(), -grad.sum(), None
