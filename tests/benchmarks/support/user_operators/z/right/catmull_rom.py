import torch
from torch.autograd.function import once_differentiable


def _locate(t, n_points, closed):
    segments = n_points if closed else n_points - 1
    s = t.clamp(0, 1) * segments
    i = s.floor().clamp(max=segments - 1)
    idx = i.long().unsqueeze(-1) + torch.arange(-1, 3, device=t.device)
    idx = idx % n_points if closed else idx.clamp(0, n_points - 1)
    return s - i, idx, segments


class CatmullRom(torch.autograd.Function):
    """points (K, D), t (N,) in [0, 1] along the whole curve -> (N, D)"""

    @staticmethod
    def forward(ctx, points, t, tension=0.5, closed=False):
        f, idx, segments = _locate(t, points.shape[0], closed)
        c = tension
        w = torch.stack([
            c * (-f + 2 * f**2 - f**3),
            1 + (c - 3) * f**2 + (2 - c) * f**3,
            c * f + (3 - 2 * c) * f**2 + (c - 2) * f**3,
            c * (f**3 - f**2),
        ], -1)
        ctx.save_for_backward(points, t, f, idx, w)
        ctx.tension, ctx.segments = tension, segments
        return (w.unsqueeze(-1) * points[idx]).sum(1)

    @staticmethod
    @once_differentiable
    def backward(ctx, g):
        points, t, f, idx, w = ctx.saved_tensors
        c = ctx.tension
        gp = gt = None
        if ctx.needs_input_grad[0]:
            part = w.unsqueeze(-1) * g.unsqueeze(1)
            gp = torch.zeros_like(points).index_add(0, idx.flatten(), part.flatten(0, 1))
        if ctx.needs_input_grad[1]:
            dw = torch.stack([
                c * (-1 + 4 * f - 3 * f**2),
                2 * (c - 3) * f + 3 * (2 - c) * f**2,
                c + 2 * (3 - 2 * c) * f + 3 * (c - 2) * f**2,
                c * (3 * f**2 - 2 * f),
            ], -1)
            inside = (t >= 0) & (t <= 1)
            gt = ((points[idx] @ g.unsqueeze(-1)).squeeze(-1) * dw).sum(-1)
            gt = gt * ctx.segments * inside
        return gp, gt, None, None
