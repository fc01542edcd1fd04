import torch


class TopKGate(torch.autograd.Function):
    """Router of a sparse mixture: logits (N, E) -> weights (N, k), experts (N, k).

    The softmax is over all experts; ``renormalize`` makes the chosen weights sum to ``scale``.
    """

    @staticmethod
    def forward(ctx, logits, k=2, renormalize=True, scale=1.0):
        p = logits.softmax(-1)
        w, idx = p.topk(k, dim=-1)
        if renormalize:
            w = w / w.sum(-1, keepdim=True)
        ctx.save_for_backward(logits, idx)
        ctx.renormalize, ctx.scale = renormalize, scale
        ctx.mark_non_differentiable(idx)
        return w * scale, idx

    @staticmethod
    def backward(ctx, gw, _):
        logits, idx = ctx.saved_tensors
        p = logits.softmax(-1)
        gw = gw * ctx.scale
        if ctx.renormalize:
            w = p.gather(-1, idx)
            total = w.sum(-1, keepdim=True)
            gw = (gw - (gw * w).sum(-1, keepdim=True) / total) / total
        gp = torch.zeros_like(p).scatter(-1, idx, gw)
        return p * (gp - (gp * p).sum(-1, keepdim=True)), None, None, None
