import torch


class NoAuxRouter(torch.autograd.Function):
    """DeepSeek-V3 gate. The correction bias steers the selection only; weights come from the raw
    sigmoid scores, are normalised to one over the selected experts and multiplied by
    routed_scaling_factor."""

    @staticmethod
    def forward(ctx, logits, correction_bias, top_k, routed_scaling_factor=1.0, norm_topk_prob=True):
        scores = logits.sigmoid()
        idx = torch.topk(scores + correction_bias, top_k, dim=-1).indices
        w = scores.gather(-1, idx)
        if norm_topk_prob:
            w = w / (w.sum(-1, keepdim=True) + 1e-20)
        ctx.save_for_backward(logits, correction_bias, idx)
        ctx.factor, ctx.norm = routed_scaling_factor, norm_topk_prob
        ctx.mark_non_differentiable(idx)
        return w * routed_scaling_factor, idx

    @staticmethod
    def backward(ctx, dw, _):
        logits, correction_bias, idx = ctx.saved_tensors
        scores = logits.sigmoid() + correction_bias
        picked = scores.gather(-1, idx)
        dw = dw * ctx.factor
        if ctx.norm:
            total = picked.sum(-1, keepdim=True) + 1e-20
            dw = (dw - (dw * picked).sum(-1, keepdim=True) / total) / total
        dlogits = torch.zeros_like(logits).scatter(-1, idx, dw * picked * (1 - picked))
        return dlogits, None, None, None, None
