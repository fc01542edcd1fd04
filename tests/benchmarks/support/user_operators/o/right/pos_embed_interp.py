import torch


def _taps(length, out_len, align_corners, like):
    i = torch.arange(out_len, device=like.device, dtype=like.dtype)
    if align_corners:
        pos = i * ((length - 1) / max(out_len - 1, 1))
    else:
        pos = ((i + 0.5) * (length / out_len) - 0.5).clamp(0, length - 1)
    lo = pos.floor().long().clamp(max=length - 1)
    hi = (lo + 1).clamp(max=length - 1)
    return lo, hi, (pos - lo).unsqueeze(-1)


class ResamplePositions(torch.autograd.Function):
    """Linear resampling of a table of position embeddings, (L, D) -> (out_len, D)."""

    @staticmethod
    def forward(ctx, table, out_len, align_corners=True):
        if out_len < 1:
            raise ValueError("out_len must be positive")
        ctx.length = table.size(0)
        ctx.align_corners = align_corners
        lo, hi, w = _taps(ctx.length, out_len, align_corners, table)
        return table[lo] * (1 - w) + table[hi] * w

    @staticmethod
    def backward(ctx, grad):
        lo, hi, w = _taps(ctx.length, grad.size(0), ctx.align_corners, grad)
        g = grad.new_zeros(ctx.length, grad.size(1))
        g = g.index_add(0, lo, grad * (1 - w)).index_add(0, hi, grad * w)
        return g, None, None
