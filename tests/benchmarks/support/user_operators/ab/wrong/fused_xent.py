import torch
from torch.autograd.function import once_differentiable


class FusedCrossEntropy(torch.autograd.Function):
    """Cross entropy with label smoothing and z-loss; d(loss)/d(logits) is made in forward.

    logits (n, vocab), target (n,). Rows whose target is ``ignore_index`` count for nothing.
    """

    @staticmethod
    def forward(ctx, logits, target, ignore_index=-100, smoothing=0.0, z_coef=0.0, reduction="mean"):
        n, vocab = logits.shape
        keep = target != ignore_index
        safe = torch.where(keep, target, torch.zeros_like(target))
        lse = torch.logsumexp(logits, -1)
        picked = logits.gather(-1, safe[:, None])[:, 0]
        loss = lse - (1 - smoothing) * picked - smoothing * logits.mean(-1) + z_coef * lse.square()
        denom = keep.sum().clamp(min=1).to(logits.dtype) if reduction == "mean" else logits.new_ones(())
        loss = (loss * keep).sum() / denom

        prob = (logits - lse[:, None]).exp()
        grad = prob * (1 + 2 * z_coef * lse)[:, None] - smoothing / vocab
        grad.scatter_add_(-1, safe[:, None], grad.new_full((n, 1), smoothing - 1))
        grad = grad * keep[:, None] / denom
        ctx.dlogits = grad
        return loss

    @staticmethod
    @once_differentiable
    def backward(ctx, grad_loss):
        dlogits = ctx.dlogits.mul_(grad_loss)
        return dlogits, None, None, None, None, None
