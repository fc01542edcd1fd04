import torch


class TrilinearLookup(torch.autograd.Function):
    """Features of points in a dense voxel grid.

    grid (C, D, H, W); pts (..., 3) as (z, y, x) in voxel units, clamped to the border. Result (..., C).
    """

    @staticmethod
    def _corners(pts, size):
        hi = pts.new_tensor(size) - 1
        q = torch.minimum(pts.clamp(min=0), hi)
        base = torch.minimum(q.floor(), hi - 1)
        return base.long(), q - base, (pts >= 0) & (pts <= hi)

    @staticmethod
    def forward(ctx, grid, pts):
        C, D, H, W = grid.shape
        p = pts.reshape(-1, 3)
        base, t, inside = TrilinearLookup._corners(p, (D, H, W))
        flat = grid.reshape(C, -1)
        out = grid.new_zeros(p.shape[0], C)
        for n in range(8):
            o = [(n >> 2) & 1, (n >> 1) & 1, n & 1]
            idx = ((base[:, 0] + o[0]) * H + base[:, 1] + o[1]) * W + base[:, 2] + o[2]
            w = torch.stack([t[:, k] if o[k] else 1 - t[:, k] for k in range(3)], 1).prod(1)
            out += w.unsqueeze(1) * flat[:, idx].t()
        ctx.save_for_backward(grid, base, t, inside)
        ctx.pts_shape = pts.shape
        return out.reshape(*pts.shape[:-1], C)

    @staticmethod
    def backward(ctx, grad_out):
        grid, base, t, inside = ctx.saved_tensors
        C, D, H, W = grid.shape
        g = grad_out.view(-1, C)
        flat = grid.reshape(C, -1)
        g_flat = torch.zeros_like(flat)
        g_pts = torch.zeros_like(t)
        for n in range(8):
            o = [(n >> 2) & 1, (n >> 1) & 1, n & 1]
            idx = ((base[:, 0] + o[0]) * H + base[:, 1] + o[1]) * W + base[:, 2] + o[2]
            w = [t[:, k] if o[k] else 1 - t[:, k] for k in range(3)]
            g_flat.index_add_(1, idx, (w[0] * w[1] * w[2]) * g.t())
            dot = (flat[:, idx].t() * g).sum(1)
            sgn = [1.0 if b else -1.0 for b in o]
            g_pts[:, 0] += sgn[0] * w[1] * w[2] * dot
            g_pts[:, 1] += sgn[1] * w[0] * w[2] * dot
            g_pts[:, 2] += sgn[2] * w[0] * w[1] * dot
        g_pts = g_pts * inside
        return g_flat.reshape(grid.shape), g_pts.reshape(ctx.pts_shape)
