import torch


def _beats(scores, tau):
    # [b, i, j]: how surely j stands before i
    return torch.sigmoid((scores[:, None, :] - scores[:, :, None]) / tau)


class SoftRank(torch.autograd.Function):
    @staticmethod
    def forward(ctx, scores, tau=1.0, mask=None):
        n = scores.shape[1]
        pair = ~torch.eye(n, dtype=torch.bool, device=scores.device).expand(len(scores), n, n)
        if mask is not None:
            pair = pair & mask[:, None, :] & mask[:, :, None]
        p = _beats(scores, tau)
        ctx.save_for_backward(scores)
        ctx.pair, ctx.tau, ctx.p = pair, tau, p
        return 1 + (p * pair).sum(-1)

    @staticmethod
    def backward(ctx, g):
        (scores,) = ctx.saved_tensors
        p = ctx.p
        w = g[:, :, None] * p * (1 - p) * ctx.pair / ctx.tau
        return w.sum(1) - w.sum(2), None, None
