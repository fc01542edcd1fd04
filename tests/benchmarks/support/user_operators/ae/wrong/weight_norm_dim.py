import torch


def _norm_except(v, dim):
    if dim is None:
        return v.norm()
    axes = [d for d in range(v.dim()) if d != dim % v.dim()]
    return v.norm(dim=axes, keepdim=True) if axes else v.abs()


class _WeightNorm(torch.autograd.Function):
    @staticmethod
    def forward(ctx, v, g, dim):
        norm = _norm_except(v, dim)
        ctx.save_for_backward(v, g)
        ctx.dim = dim
        return v * (g / norm)

    @staticmethod
    def backward(ctx, gw):
        v, g = ctx.saved_tensors
        norm = _norm_except(v, ctx.dim)
        unit = v / norm
        dot = gw * unit
        if ctx.dim is None:
            dot = dot.sum()
        else:
            axes = [d for d in range(v.dim()) if d != ctx.dim % v.dim()]
            dot = dot.sum(dim=axes, keepdim=True) if axes else dot
        gv = gw * (g / norm) - unit * dot
        gg = dot
        return gv, gg, None


def weight_norm(v, g, dim=0):
    """w = g * v / ||v||; the norm runs over all axes but ``dim`` (all axes with ``dim=None``).

    g has the shape of that norm with kept axes (a scalar tensor with ``dim=None``).
    """
    return _WeightNorm.apply(v, g, dim)
