import torch


class TopKRouter(torch.autograd.Function):
    """Softmax gate, top k.

    (weights, experts) = TopKRouter.apply(logits, k, renormalize, scale)
    logits (N, E); weights and experts (N, k).
    """

    @staticmethod
    def forward(ctx, logits, k, renormalize=True, scale=1.0):
        probs = logits.softmax(-1)
        w, idx = probs.topk(k, -1)
        if renormalize:
            w = w / w.sum(-1, keepdim=True)
        ctx.save_for_backward(logits, idx)
        ctx.renormalize = renormalize
        ctx.scale = scale
        ctx.mark_non_differentiable(idx)
        return w * scale, idx

    @staticmethod
    def backward(ctx, gw, _):
        logits, idx = ctx.saved_tensors
        probs = logits.softmax(-1)
        gw = gw * ctx.scale
        if ctx.renormalize:
            top = probs.gather(-1, idx)
            z = top.sum(-1, keepdim=True)
            gw = (gw - (gw * top).sum(-1, keepdim=True) / z) / z
        gp = torch.zeros_like(probs).scatter(-1, idx, gw)
        g = probs * (gp - (gp * probs).sum(-1, keepdim=True))
        return g, None, None, None
