import torch


class MeanEmbeddingBag(torch.autograd.Function):
    """Mean of the embeddings of each row of ids, padding left out.

    weight: (V, D); ids: (B, L); per_sample: (B, L) or None. Rows that hold only padding give zeros.
    """

    @staticmethod
    def forward(ctx, weight, ids, padding_idx=None, per_sample=None):
        keep = torch.ones_like(ids, dtype=torch.bool) if padding_idx is None else ids != padding_idx
        n = keep.sum(1, keepdim=True).clamp(min=1).to(weight.dtype)
        coef = keep.to(weight.dtype) / n
        ctx.save_for_backward(weight, ids, coef, per_sample)
        full = coef if per_sample is None else coef * per_sample
        return torch.einsum("bl,bld->bd", full, weight[ids])

    @staticmethod
    def backward(ctx, grad):
        weight, ids, coef, per_sample = ctx.saved_tensors
        full = coef if per_sample is None else coef * per_sample
        g_weight = g_per = None
        if ctx.needs_input_grad[0]:
            rows = full.unsqueeze(-1) * grad.unsqueeze(1)
            g_weight = torch.zeros_like(weight).index_add(0, ids.flatten(), rows.flatten(0, 1))
        if per_sample is not None and ctx.needs_input_grad[3]:
            g_per = torch.einsum("bd,bld->bl", grad, weight[ids]) * coef
        return g_weight, None, None, g_per
