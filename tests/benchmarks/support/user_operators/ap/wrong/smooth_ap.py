import torch


class SmoothAveragePrecision(torch.autograd.Function):
    """Brown et al. 2020. scores (Q, N), rel (Q, N) bool with at least one True a row -> (Q,)"""

    @staticmethod
    def _parts(scores, rel, tau):
        n = scores.shape[1]
        off = 1 - torch.eye(n, dtype=scores.dtype, device=scores.device)
        sig = torch.sigmoid((scores[:, None, :] - scores[:, :, None]) / tau) * off
        return sig, 1 + (sig * rel[:, None, :]).sum(-1), 1 + sig.sum(-1)

    @staticmethod
    def forward(ctx, scores, rel, tau=0.1):
        rel = rel.to(scores.dtype)
        ctx.save_for_backward(scores, rel)
        ctx.tau = tau
        _, pos, rank = SmoothAveragePrecision._parts(scores, rel, tau)
        return (rel * pos / rank).sum(-1) / rel.sum(-1)

    @staticmethod
    def backward(ctx, grad):
        scores, rel = ctx.saved_tensors
        sig, pos, rank = SmoothAveragePrecision._parts(scores, rel, ctx.tau)
        w = grad[:, None] * rel / rel.sum(-1, keepdim=True)
        gd = (w / rank)[:, :, None] * (rel[:, None, :] - (pos / rank)[:, :, None])
        gd = gd * sig * (1 - sig) / ctx.tau
        return gd.sum(1), None, None
