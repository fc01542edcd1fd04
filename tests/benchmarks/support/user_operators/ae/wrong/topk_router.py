import torch


class _TopKGate(torch.autograd.Function):
    @staticmethod
    def forward(ctx, logits, k, renormalize, scaling):
        probs = logits.softmax(-1)
        top, idx = probs.topk(k, dim=-1)
        weights = top / top.sum(-1, keepdim=True) if renormalize else top
        ctx.save_for_backward(logits, idx)
        ctx.spec = (renormalize, scaling)
        ctx.mark_non_differentiable(idx)
        return weights * scaling, idx

    @staticmethod
    def backward(ctx, gw, _):
        logits, idx = ctx.saved_tensors
        renormalize, scaling = ctx.spec
        probs = logits.softmax(-1)
        gtop = gw * scaling
        if renormalize:
            top = probs.gather(-1, idx)
            total = top.sum(-1, keepdim=True)
            gtop = (gtop - (gtop * top).sum(-1, keepdim=True)) / total
        gp = torch.zeros_like(probs).scatter(-1, idx, gtop)
        return probs * (gp - (gp * probs).sum(-1, keepdim=True)), None, None, None


def topk_router(logits, k=2, renormalize=True, routed_scaling_factor=1.0):
    """Gate of a sparse mixture of experts: (T, E) -> weights (T, k), expert ids (T, k)"""
    return _TopKGate.apply(logits, k, renormalize, routed_scaling_factor)
