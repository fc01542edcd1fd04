import torch
from torch.autograd.function import once_differentiable


class RNNTLoss(torch.autograd.Function):
    """Transducer loss.

    log_probs (B, T, U+1, V) log-softmax over V, targets (B, U), f_len (B,) frames, y_len (B,) labels.
    reduction: 'none', 'sum' or 'mean' (over the batch)
    """

    @staticmethod
    def forward(ctx, log_probs, targets, f_len, y_len, blank=0, reduction="mean"):
        B = log_probs.shape[0]
        grads = torch.zeros_like(log_probs)
        costs = log_probs.new_zeros(B)
        for b in range(B):
            T, U = int(f_len[b]), int(y_len[b])
            lp, y = log_probs[b], targets[b]
            ninf = float("-inf")
            alpha = lp.new_full((T, U + 1), ninf)
            beta = lp.new_full((T + 1, U + 2), ninf)
            alpha[0, 0] = 0
            for t in range(T):
                for u in range(U + 1):
                    if t > 0:
                        alpha[t, u] = torch.logaddexp(alpha[t, u], alpha[t - 1, u] + lp[t - 1, u, blank])
                    if u > 0:
                        alpha[t, u] = torch.logaddexp(alpha[t, u], alpha[t, u - 1] + lp[t, u - 1, y[u - 1]])
            beta[T, U] = 0
            for t in range(T - 1, -1, -1):
                for u in range(U, -1, -1):
                    stay = beta[t + 1, u] + lp[t, u, blank]
                    if u < U:
                        stay = torch.logaddexp(stay, beta[t, u + 1] + lp[t, u, y[u]])
                    beta[t, u] = stay
            ll = beta[0, 0]
            costs[b] = -ll
            grads[b, :T, :U + 1, blank] = -torch.exp(alpha + beta[1:, :U + 1] + lp[:T, :U + 1, blank] - ll)
            for u in range(U):
                k = y[u]
                grads[b, :T, u, k] -= torch.exp(alpha[:, u] + beta[:T, u + 1] + lp[:T, u, k] - ll)
        ctx.save_for_backward(grads)
        ctx.reduction = reduction
        if reduction == "mean":
            return costs.mean()
        return costs.sum() if reduction == "sum" else costs

    @staticmethod
    @once_differentiable
    def backward(ctx, g):
        grads, = ctx.saved_tensors
        if ctx.reduction == "mean":
            g = g / grads.shape[0]
        return g.reshape(-1, 1, 1, 1) * grads, None, None, None, None, None
