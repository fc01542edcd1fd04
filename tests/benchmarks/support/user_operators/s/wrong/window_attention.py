import torch


def _weights(q, k, window, causal):
    T = q.shape[-2]
    gap = torch.arange(T, device=q.device)[:, None] - torch.arange(T, device=q.device)
    keep = gap.abs() < window
    if causal:
        keep = keep & (gap >= 0)
    scores = q @ k.mT * q.shape[-1] ** -0.5
    return scores.masked_fill(~keep, float("-inf")).softmax(-1)


class SlidingWindowAttention(torch.autograd.Function):
    """Attention to the last `window` keys (and, unless causal, the next ones), the own included.

    The weights are computed again in backward.  q, k, v: (..., T, d), same T.
    """

    @staticmethod
    def forward(ctx, q, k, v, window, causal=True):
        ctx.save_for_backward(q, k, v)
        ctx.window, ctx.causal = window, causal
        return _weights(q, k, window, causal) @ v

    @staticmethod
    def backward(ctx, grad):
        q, k, v = ctx.saved_tensors
        p = _weights(q, k, ctx.window + 1, ctx.causal)
        gv = p.mT @ grad
        gp = grad @ v.mT
        gs = p * (gp - (gp * p).sum(-1, keepdim=True)) * q.shape[-1] ** -0.5
        return gs @ k, gs.mT @ q, gv, None, None
