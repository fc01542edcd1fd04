import torch


class CombineExperts(torch.autograd.Function):
    """Mix the k best experts.

    logits: (N, E); outs: (N, E, D), what each expert says; the weights are a softmax over the k
    chosen logits. Returns the mixture (N, D) and the chosen experts (N, k).
    """

    @staticmethod
    def forward(ctx, logits, outs, k=2):
        chosen = logits.topk(k, dim=-1).indices
        w = logits.gather(1, chosen).softmax(-1)
        at = chosen[..., None].expand(-1, -1, outs.shape[-1])
        ctx.save_for_backward(logits, outs)
        ctx.chosen, ctx.at = chosen, at
        ctx.mark_non_differentiable(chosen)
        return (w[..., None] * outs.gather(1, at)).sum(1), chosen

    @staticmethod
    def backward(ctx, g, _):
        logits, outs = ctx.saved_tensors
        w = logits.gather(1, ctx.chosen).softmax(-1)
        gw = (g[:, None] * outs.gather(1, ctx.at)).sum(-1)
        gl = w * (1 - w) * gw
        g_logits = torch.zeros_like(logits).scatter(1, ctx.chosen, gl)
        g_outs = torch.zeros_like(outs).scatter(1, ctx.at, w[..., None] * g[:, None])
        return g_logits, g_outs, None
