import torch


class Tofts(torch.autograd.Function):
    """(Extended) Tofts model on a uniform time grid.

    cp (T,) plasma concentration; ktrans, kep and vp (V,) per voxel, vp None for the plain model -> (V, T)
    """

    @staticmethod
    def forward(ctx, cp, ktrans, kep, vp=None, dt=1.0):
        kernel = Tofts.residue(cp, kep, dt)[0]
        out = ktrans[:, None] * (kernel @ cp) * dt
        if vp is not None:
            out = out + vp[:, None] * cp
        ctx.save_for_backward(cp, ktrans, kep, vp)
        ctx.dt = dt
        return out

    @staticmethod
    def residue(cp, kep, dt):
        n = torch.arange(cp.numel(), dtype=cp.dtype, device=cp.device)
        lag = (n[:, None] - n) * dt
        causal = lag >= 0
        lag = lag.clamp(min=0)
        return torch.exp(-kep[:, None, None] * lag) * causal, lag

    @staticmethod
    def backward(ctx, grad):
        cp, ktrans, kep, vp = ctx.saved_tensors
        kernel, lag = Tofts.residue(cp, kep, ctx.dt)
        g_ktrans = (grad * (kernel @ cp)).sum(1) * ctx.dt
        g_kep = -ktrans * (grad * ((kernel * lag) @ cp)).sum(1) * ctx.dt
        g_cp = torch.einsum("v,vt,vts->s", ktrans, grad, kernel) * ctx.dt
        if vp is None:
            return g_cp, g_ktrans, g_kep
        g_cp = g_cp + vp @ grad
        return g_cp, g_ktrans, g_kep, grad @ cp, None
