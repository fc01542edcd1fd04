import torch
from torch.autograd.function import once_differentiable


class LabelSmoothedNLL(torch.autograd.Function):
    """Label-smoothed cross entropy over (..., V) logits, averaged over the tokens that count."""

    @staticmethod
    def forward(ctx, logits, target, epsilon=0.1, ignore_index=-100):
        V = logits.shape[-1]
        flat = logits.reshape(-1, V)
        tgt = target.reshape(-1)
        valid = tgt != ignore_index
        safe = tgt.masked_fill(~valid, 0)
        logp = flat - torch.logsumexp(flat, dim=-1, keepdim=True)
        nll = -logp.gather(1, safe[:, None]).squeeze(1)
        smooth = -logp.mean(dim=-1)
        per_token = (1 - epsilon) * nll + epsilon * smooth
        n_valid = valid.sum().clamp(min=1)
        loss = per_token.masked_fill(~valid, 0.0).sum() / n_valid
        ctx.save_for_backward(logp, safe, valid, n_valid)
        ctx.epsilon = epsilon
        ctx.shape = logits.shape
        return loss

    @staticmethod
    @once_differentiable
    def backward(ctx, grad_loss):
        logp, safe, valid, n_valid = ctx.saved_tensors
        V = logp.shape[-1]
        q = torch.full_like(logp, ctx.epsilon / V)
        q.scatter_add_(1, safe[:, None], torch.full_like(logp[:, :1], 1 - ctx.epsilon))
        g = logp.exp() - q
        g = g * valid[:, None]
        g = g * (grad_loss / n_valid)
        return g.view(ctx.shape), None, None, None
