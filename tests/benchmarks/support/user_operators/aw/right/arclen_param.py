import torch


class _ArcLength(torch.autograd.Function):
    @staticmethod
    def forward(ctx, pts):
        ctx.save_for_backward(pts)
        seg = (pts[:, 1:] - pts[:, :-1]).norm(dim=-1)
        s = torch.cat([seg.new_zeros(len(seg), 1), seg.cumsum(1)], 1)
        return s / s[:, -1:]

    @staticmethod
    def backward(ctx, grad):
        pts, = ctx.saved_tensors
        diff = pts[:, 1:] - pts[:, :-1]
        seg = diff.norm(dim=-1)
        total = seg.sum(1, keepdim=True)
        u = seg.cumsum(1) / total
        g = grad[:, 1:]
        after = g.flip(1).cumsum(1).flip(1)
        g_seg = (after - (g * u).sum(1, keepdim=True)) / total
        g_diff = (g_seg / seg)[..., None] * diff
        g_pts = torch.zeros_like(pts)
        g_pts[:, 1:] += g_diff
        g_pts[:, :-1] -= g_diff
        return g_pts


def arc_length_parameter(pts):
    """Chord-length parameters in [0, 1] of polylines (B, N, D) with distinct neighbours -> (B, N)."""
    return _ArcLength.apply(pts)
