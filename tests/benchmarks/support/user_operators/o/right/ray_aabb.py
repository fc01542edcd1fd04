import torch
from torch.autograd import Function


class RayAABB(Function):
    """Slab test of rays against one axis-aligned box.

    origins, dirs: (N, 3), no direction component may be zero; lo, hi: (3,)
    Returns t_near (N,), t_far (N,) and the hit mask (N,), where a hit has t_near <= t_far.
    """

    @staticmethod
    def _planes(origins, dirs, lo, hi):
        t0 = (lo - origins) / dirs
        t1 = (hi - origins) / dirs
        near, i = torch.minimum(t0, t1).max(-1)
        far, j = torch.maximum(t0, t1).min(-1)
        return near, i, far, j

    @staticmethod
    def forward(ctx, origins, dirs, lo, hi):
        if origins.shape != dirs.shape or origins.shape[1:] != (3,) or lo.shape != (3,) or hi.shape != (3,):
            raise ValueError("expected (N, 3) rays and (3,) corners")
        if (dirs == 0).any():
            raise ValueError("axis-parallel rays are not supported")
        if (lo > hi).any():
            raise ValueError("lo must not exceed hi")
        ctx.save_for_backward(origins, dirs, lo, hi)
        near, _, far, _ = RayAABB._planes(origins, dirs, lo, hi)
        hit = near <= far
        ctx.mark_non_differentiable(hit)
        return near, far, hit

    @staticmethod
    def backward(ctx, g_near, g_far, _):
        origins, dirs, lo, hi = ctx.saved_tensors
        near, i, far, j = RayAABB._planes(origins, dirs, lo, hi)
        g_o, g_d = torch.zeros_like(origins), torch.zeros_like(dirs)
        g_lo, g_hi = torch.zeros_like(lo), torch.zeros_like(hi)
        for g, t, axis, entering in ((g_near, near, i, True), (g_far, far, j, False)):
            d = dirs.gather(1, axis[:, None]).squeeze(1)
            to_lo = (d > 0) == entering
            g_o = g_o.scatter_add(1, axis[:, None], (-g / d)[:, None])
            g_d = g_d.scatter_add(1, axis[:, None], (-g * t / d)[:, None])
            g_lo = g_lo.index_add(0, axis, g / d * to_lo)
            g_hi = g_hi.index_add(0, axis, g / d * ~to_lo)
        return g_o, g_d, g_lo, g_hi
