import torch
from torch.autograd.function import once_differentiable


class LabelSmoothingCrossEntropy(torch.autograd.Function):
    @staticmethod
    def forward(ctx, logits, target, smoothing=0.1, reduction="mean", z_loss=0.0):
        lse = torch.logsumexp(logits, dim=-1, keepdim=True)
        logp = logits - lse
        nll = -logp.gather(-1, target.unsqueeze(-1)).squeeze(-1)
        loss = (1 - smoothing) * nll - smoothing * logp.mean(-1)
        if z_loss:
            loss = loss + z_loss * lse.squeeze(-1) ** 2
        ctx.save_for_backward(logp, target, lse)
        ctx.cfg = smoothing, reduction, z_loss
        if reduction == "none":
            return loss
        return loss.mean() if reduction == "mean" else loss.sum()

    @staticmethod
    @once_differentiable
    def backward(ctx, g):
        logp, target, lse = ctx.saved_tensors
        smoothing, reduction, z_loss = ctx.cfg
        if reduction == "mean":
            g = g / target.numel()
        if reduction != "none":
            g = g.expand(target.shape)
        p = logp.exp()
        want = torch.full_like(p, smoothing / p.shape[-1])
        want.scatter_add_(-1, target.unsqueeze(-1), torch.full_like(lse, 1 - smoothing))
        grad = p - want
        if z_loss:
            grad = grad + 2 * z_loss * lse * p
        return g.unsqueeze(-1) * grad, None, None, None
