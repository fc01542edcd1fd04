import torch
from torch.autograd import Function

lgamma, psi = torch.lgamma, torch.digamma


def slopes(a, b, k, n):
    both = psi(n + a + b) - psi(a + b)
    return both + psi(a) - psi(k + a), both + psi(b) - psi(n - k + b)


class BetaBinomialNLL(Function):
    """-log P(k successes of n | a, b) without the binomial coefficient.

    a, b > 0 broadcast against the counts k and n (floating point, 0 <= k <= n).
    """

    @staticmethod
    def forward(ctx, a, b, k, n):
        ctx.save_for_backward(a, b, k, n)
        ctx.slopes = slopes(a, b, k, n)
        return (lgamma(a) + lgamma(b) - lgamma(a + b)) - (lgamma(k + a) + lgamma(n - k + b) - lgamma(n + a + b))

    @staticmethod
    def backward(ctx, g):
        a, b, k, n = ctx.saved_tensors
        da, db = ctx.slopes
        return (g * da).sum_to_size(a.shape), (g * db).sum_to_size(b.shape), None, None
