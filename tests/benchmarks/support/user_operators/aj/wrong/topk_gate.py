import torch


class _TopK(torch.autograd.Function):
    @staticmethod
    def forward(ctx, logits, k, renorm):
        p = logits.softmax(-1)
        w, idx = p.topk(k, -1)
        if renorm:
            w = w / w.sum(-1, keepdim=True)
        ctx.save_for_backward(logits, idx)
        ctx.renorm = renorm
        ctx.mark_non_differentiable(idx)
        return w, idx

    @staticmethod
    def backward(ctx, g, _):
        logits, idx = ctx.saved_tensors
        if ctx.renorm:
            w = logits.gather(-1, idx).softmax(-1)
            gw = g.mul_(w)
            gl = gw - w * gw.sum(-1, keepdim=True)
            return torch.zeros_like(logits).scatter(-1, idx, gl), None, None
        p = logits.softmax(-1)
        gp = p * torch.zeros_like(p).scatter(-1, idx, g)
        return gp - p * gp.sum(-1, keepdim=True), None, None


def topk_gate(logits, k=2, renorm=True):
    """router of a mixture of experts: logits (T, E) -> weights (T, k), experts (T, k)"""
    return _TopK.apply(logits, k, renorm)
