import torch
from torch.autograd import Function


class _NearestSq(Function):
    """For every point of a (B,N,D): squared distance to its nearest point in b (B,M,D)."""

    @staticmethod
    def forward(ctx, a, b, b_len):
        d = ((a[:, :, None] - b[:, None]) ** 2).sum(-1)
        if b_len is not None:
            pad = torch.arange(b.shape[1], device=b.device)[None] >= b_len[:, None]
            d = d.masked_fill(pad[:, None, :], float("inf"))
        dist, idx = d.min(dim=2)
        ctx.save_for_backward(a, b, idx)
        return dist

    @staticmethod
    def backward(ctx, g):
        a, b, idx = ctx.saved_tensors
        where = idx.unsqueeze(-1).expand(-1, -1, a.shape[-1])
        diff = 2 * g.unsqueeze(-1) * (a - b.gather(1, where))
        gb = torch.zeros_like(b).scatter_add(1, where, -diff)
        return diff, gb, None


def _pool(d, length, how):
    if length is None:
        return d.sum(1) if how == "sum" else d.mean(1)
    live = (torch.arange(d.shape[1], device=d.device)[None] < length[:, None]).to(d.dtype)
    total = (d * live).sum(1)
    return total if how == "sum" else total / length.to(d.dtype)


def chamfer_distance(x, y, x_lengths=None, y_lengths=None, point_reduction="mean", single_directional=False):
    """Chamfer distance of padded clouds x (B,N,D) and y (B,M,D); returns (B,)."""
    if point_reduction not in ("mean", "sum"):
        raise ValueError('point_reduction must be "mean" or "sum"')
    loss = _pool(_NearestSq.apply(x, y, y_lengths), x_lengths, point_reduction)
    if not single_directional:
        loss = loss + _pool(_NearestSq.apply(y, x, x_lengths), y_lengths, point_reduction)
    return loss
