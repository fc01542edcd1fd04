import torch


class SegmentLogSumExp(torch.autograd.Function):
    """logsumexp of the rows of ``x`` (N, C) that share a segment id (N,).

    Ids need not be sorted; empty segments give -inf.
    """

    @staticmethod
    def forward(ctx, x, segment_ids, num_segments):
        index = segment_ids[:, None].expand_as(x)
        top = x.new_full((num_segments, x.shape[1]), float("-inf"))
        top = top.scatter_reduce(0, index, x, reduce="amax", include_self=True)
        shift = torch.where(torch.isfinite(top), top, torch.zeros_like(top))
        total = torch.zeros_like(top).index_add(0, segment_ids, torch.exp(x - shift[segment_ids]))
        out = total.log() + shift
        ctx.save_for_backward(x, segment_ids, out)
        return out

    @staticmethod
    def backward(ctx, grad_out):
        x, segment_ids, out = ctx.saved_tensors
        prob = torch.softmax(x, dim=0)
        return prob * grad_out[segment_ids], None, None
