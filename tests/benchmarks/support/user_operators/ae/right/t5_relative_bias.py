import math

import torch


def relative_bucket(rel, num_buckets, max_distance):
    """bidirectional buckets of T5: half for each sign, exact near zero, logarithmic far off"""
    half = num_buckets // 2
    bucket = (rel > 0).long() * half
    n = rel.abs()
    exact = half // 2
    far = exact + (torch.log(n.clamp(min=1).double() / exact) / math.log(max_distance / exact) * (half - exact)).long()
    return bucket + torch.where(n < exact, n, far.clamp(max=half - 1))


class RelativePositionBias(torch.autograd.Function):
    """scores (B, H, Q, K) + table[bucket(k - q)] with table: (num_buckets, H)"""

    @staticmethod
    def forward(ctx, scores, table, max_distance=128):
        q, k = scores.shape[-2:]
        pos_q = torch.arange(k - q, k, device=scores.device)
        pos_k = torch.arange(k, device=scores.device)
        bucket = relative_bucket(pos_k[None, :] - pos_q[:, None], table.shape[0], max_distance)
        ctx.save_for_backward(bucket)
        ctx.table_shape = table.shape
        return scores + table[bucket].permute(2, 0, 1)

    @staticmethod
    def backward(ctx, grad):
        (bucket,) = ctx.saved_tensors
        grad_table = None
        if ctx.needs_input_grad[1]:
            flat = grad.sum(0).permute(1, 2, 0).reshape(-1, ctx.table_shape[1])
            grad_table = grad.new_zeros(ctx.table_shape)
            grad_table = grad_table.index_put((bucket.reshape(-1),), flat, accumulate=True)
        return grad, grad_table, None
