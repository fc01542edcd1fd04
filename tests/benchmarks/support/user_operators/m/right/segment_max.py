from typing import Optional

import torch
from torch.autograd.function import once_differentiable


class SegmentMax(torch.autograd.Function):
    """Maximum of ``values`` (N,) per segment.

    Args:
        values: (N,)
        index: (N,) long segment of each value, in any order
        num_segments: number of segments; ``index.max() + 1`` when None
        fill: result of an empty segment

    The gradient of a segment is shared evenly between the values equal to its
    maximum.
    """

    @staticmethod
    def forward(ctx, values, index, num_segments: Optional[int] = None, fill: float = 0.0):
        if num_segments is None:
            num_segments = int(index.max()) + 1 if index.numel() else 0
        out = values.new_full((num_segments,), fill)
        out = out.scatter_reduce(0, index, values, reduce="amax", include_self=False)
        ctx.save_for_backward(values, index, out)
        return out

    @staticmethod
    @once_differentiable
    def backward(ctx, grad_out):
        values, index, out = ctx.saved_tensors
        hit = (values == out[index]).to(values.dtype)
        count = torch.zeros_like(out).index_add(0, index, hit)
        return hit * grad_out[index] / count[index], None, None, None
