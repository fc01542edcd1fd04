import torch
from torch.autograd.function import once_differentiable

NEG = float("-inf")


def _one(logp, target, T, U, blank):
    """Cost and gradient w.r.t. log probabilities of one utterance."""
    lp = logp.new_zeros
    alpha = [[None] * (U + 1) for _ in range(T)]
    beta = [[None] * (U + 1) for _ in range(T)]
    for t in range(T):
        for u in range(U + 1):
            terms = []
            if t > 0:
                terms.append(alpha[t - 1][u] + logp[t - 1, u, blank])
            if u > 0:
                terms.append(alpha[t][u - 1] + logp[t, u - 1, target[u - 1]])
            alpha[t][u] = torch.logsumexp(torch.stack(terms), 0) if terms else lp(())
    for t in range(T - 1, -1, -1):
        for u in range(U, -1, -1):
            terms = []
            if t == T - 1 and u == U:
                terms.append(logp[t, u, blank])
            if t < T - 1:
                terms.append(beta[t + 1][u] + logp[t, u, blank])
            if u < U:
                terms.append(beta[t][u + 1] + logp[t, u, target[u]])
            beta[t][u] = torch.logsumexp(torch.stack(terms), 0)
    total = beta[0][0]
    grad = torch.zeros_like(logp)
    for t in range(T):
        for u in range(U + 1):
            if t < T - 1:
                grad[t, u, blank] -= torch.exp(alpha[t][u] + logp[t, u, blank] + beta[t + 1][u] - total)
            elif u == U:
                grad[t, u, blank] -= torch.exp(alpha[t][u] + logp[t, u, blank] - total)
            if u < U:
                grad[t, u, target[u]] -= torch.exp(alpha[t][u] + logp[t, u, target[u]] + beta[t][u + 1] - total)
    return -total, grad


class _RNNT(torch.autograd.Function):
    @staticmethod
    def forward(ctx, logits, targets, logit_lengths, target_lengths, blank, clamp, fused_log_softmax):
        logp = logits.log_softmax(-1) if fused_log_softmax else logits
        costs, grads = [], []
        for b in range(logits.shape[0]):
            T, U = int(logit_lengths[b]), int(target_lengths[b])
            c, g = _one(logp[b], targets[b].tolist(), T, U, blank)
            costs.append(c)
            grads.append(g)
        grad = torch.stack(grads)
        if fused_log_softmax:
            grad = grad - logp.exp() * grad.sum(-1, keepdim=True)
        if clamp > 0:
            grad = grad.clamp(-clamp, clamp)
        ctx.save_for_backward(grad)
        return torch.stack(costs)

    @staticmethod
    @once_differentiable
    def backward(ctx, dy):
        (grad,) = ctx.saved_tensors
        return grad  * dy.view(-1, 1, 1, 1), None, None, None, None, None, None


def rnnt_loss(
    logits,
    targets,
    logit_lengths,
    target_lengths,
    blank=-1,
    clamp=-1.0,
    reduction="mean",
    fused_log_softmax=True,
):
    """RNN transducer loss.

    Args:
        logits: ``(batch, max seq length, max target length + 1, class)``
        targets: ``(batch, max target length)``
        logit_lengths, target_lengths: ``(batch,)``
        blank: class of the blank label
        clamp: bound of the gradients, not applied if negative
        reduction: ``"none" | "mean" | "sum"``
        fused_log_softmax: set to False if ``logits`` are log probabilities
    """
    if reduction not in ("none", "mean", "sum"):
        raise ValueError('reduction should be one of "none", "mean", or "sum"')
    if blank < 0:
        blank = logits.shape[-1] + blank
    costs = _RNNT.apply(logits, targets, logit_lengths, target_lengths, blank, clamp, fused_log_softmax)
    if reduction == "mean":
        return costs.mean()
    if reduction == "sum":
        return costs.sum()
    return costs
