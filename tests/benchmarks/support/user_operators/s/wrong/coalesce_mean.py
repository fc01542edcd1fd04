import torch


class CoalesceMean(torch.autograd.Function):
    """Average the rows of ``values`` that share a key.  Returns (sorted keys, means)."""

    @staticmethod
    def forward(ctx, values, keys):
        uniq, inv, counts = torch.unique(keys, return_inverse=True, return_counts=True)
        out = values.new_zeros(len(uniq), values.shape[1]).index_add_(0, inv, values)
        ctx.save_for_backward(inv, counts)
        ctx.mark_non_differentiable(uniq)
        return uniq, out / counts[:, None]

    @staticmethod
    def backward(ctx, _, grad_mean):
        inv, counts = ctx.saved_tensors
        share = grad_mean.div_(counts[:, None])
        return share[inv], None


def coalesce_mean(values, keys):
    return CoalesceMean.apply(values, keys)
