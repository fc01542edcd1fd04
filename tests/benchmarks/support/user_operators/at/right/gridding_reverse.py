import torch


def _corners(w):
    # b x s x s -> b x (s-1) x (s-1) x 4
    return torch.stack([w[:, :-1, :-1], w[:, :-1, 1:], w[:, 1:, :-1], w[:, 1:, 1:]], -1)


def _vertices(s, ref):
    a = torch.arange(s, dtype=ref.dtype, device=ref.device)
    v = torch.stack(torch.meshgrid(a, a, indexing="ij"), -1)
    return torch.stack([v[:-1, :-1], v[:-1, 1:], v[1:, :-1], v[1:, 1:]], 2)


class GriddingReverse2D(torch.autograd.Function):
    @staticmethod
    def forward(ctx, grid):
        ctx.save_for_backward(grid)
        w = _corners(grid)
        W = w.sum(-1, keepdim=True)
        keep = W.abs() > 1e-4
        p = (w.unsqueeze(-1) * _vertices(grid.size(-1), grid)).sum(-2) / W.masked_fill(~keep, 1.0)
        # empty cells give the origin
        return p.masked_fill(~keep, 0.0).reshape(grid.size(0), -1, 2)

    @staticmethod
    def backward(ctx, grad_ptcloud):
        grid, = ctx.saved_tensors
        s = grid.size(-1)
        v = _vertices(s, grid)
        w = _corners(grid)
        W = w.sum(-1, keepdim=True)
        keep = W.abs() > 1e-4
        W = W.masked_fill(~keep, 1.0)
        p = (w.unsqueeze(-1) * v).sum(-2) / W
        g = grad_ptcloud.reshape(-1, s - 1, s - 1, 1, 2)
        gw = ((v - p.unsqueeze(-2)) * g).sum(-1) / W * keep
        out = torch.zeros_like(grid)
        out[:, :-1, :-1] += gw[..., 0]
        out[:, :-1, 1:] += gw[..., 1]
        out[:, 1:, :-1] += gw[..., 2]
        out[:, 1:, 1:] += gw[..., 3]
        return out
