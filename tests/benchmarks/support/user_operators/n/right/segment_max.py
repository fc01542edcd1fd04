import torch
from torch.autograd.function import once_differentiable


class SegmentMax(torch.autograd.Function):
    """Maximum of the rows of ``values`` (N, D) within each segment.

    Rows that tie for the maximum share the gradient equally. Empty segments hold ``fill``.
    """

    @staticmethod
    def forward(ctx, values, segment_ids, num_segments: int, fill: float = 0.0):
        if segment_ids.shape != values.shape[:1]:
            raise ValueError("one segment id per row is needed")
        idx = segment_ids.unsqueeze(1).expand_as(values)
        out = values.new_full((num_segments, values.size(1)), float("-inf"))
        out = out.scatter_reduce(0, idx, values, "amax")
        hit = (values == out.gather(0, idx)).to(values.dtype)
        count = torch.zeros_like(out).scatter_add_(0, idx, hit)
        ctx.save_for_backward(idx, hit, count)
        return torch.where(count > 0, out, torch.full_like(out, fill))

    @staticmethod
    @once_differentiable
    def backward(ctx, grad_output):
        idx, hit, count = ctx.saved_tensors
        share = grad_output / count.clamp(min=1)
        return share.gather(0, idx) * hit, None, None, None
