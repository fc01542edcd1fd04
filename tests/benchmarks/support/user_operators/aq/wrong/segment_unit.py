import torch


class SegmentUnit(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, index, n_seg, eps):
        sq = torch.zeros(n_seg, dtype=x.dtype, device=x.device).index_add(0, index, (x * x).sum(1))
        norm = torch.sqrt(sq + eps)
        ctx.save_for_backward(x, index)
        ctx.n_seg, ctx.eps = n_seg, eps
        return x / norm[index, None]

    @staticmethod
    def backward(ctx, g):
        x, index = ctx.saved_tensors
        zero = torch.zeros(ctx.n_seg, dtype=x.dtype, device=x.device)
        norm = torch.sqrt(zero.index_add(0, index, (x * x).sum(1)) + ctx.eps)[index, None]
        dot = (g * x).sum(1, keepdim=True)
        return g / norm - x * dot / norm ** 3, None, None, None


def segment_unit_norm(x, index, n_seg=None, eps=1e-6):
    """Scale the rows x[index == s] together to Frobenius norm one. x (N, D), index (N,) long, any order."""
    if n_seg is None:
        n_seg = int(index.max()) + 1
    return SegmentUnit.apply(x, index, n_seg, eps)
