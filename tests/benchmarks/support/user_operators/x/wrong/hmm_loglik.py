import torch
from torch.autograd.function import once_differentiable


class HMMLogLik(torch.autograd.Function):
    """Log-likelihood by the forward algorithm.

    log_pi (S,), log_A (S, S) from row to column, log_B (T, S) of the observations.
    """

    @staticmethod
    def forward(ctx, log_pi, log_A, log_B):
        alpha = [log_pi + log_B[0]]
        for b in log_B[1:]:
            alpha.append(torch.logsumexp(alpha[-1][:, None] + log_A, 0) + b)
        alpha = torch.stack(alpha)
        ll = alpha[-1].logsumexp(0)
        ctx.save_for_backward(log_A, log_B, alpha, ll)
        return ll

    @staticmethod
    @once_differentiable
    def backward(ctx, g):
        log_A, log_B, alpha, ll = ctx.saved_tensors
        T = len(log_B)
        beta = [torch.zeros_like(alpha[0])]
        for t in range(T - 1, 0, -1):
            beta.insert(0, torch.logsumexp(log_A + log_B[t] + beta[0], 1))
        beta = torch.stack(beta)
        gamma = torch.exp(alpha + beta - ll)
        xi = torch.zeros_like(log_A)
        for t in range(T - 1):
            xi += torch.exp(alpha[t][:, None] + log_A + log_B[t] + beta[t + 1] - ll)
        return g * gamma[0], g * xi, g * gamma
