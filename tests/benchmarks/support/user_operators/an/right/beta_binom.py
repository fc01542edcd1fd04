import torch

lg, psi = torch.lgamma, torch.digamma


class BetaBinomialLogProb(torch.autograd.Function):
    # k, n: counts (N, C), no gradient.  a, b: (C,) positive.
    @staticmethod
    def forward(ctx, a, b, k, n):
        ctx.save_for_backward(a, b, k, n)
        comb = lg(n + 1) - lg(k + 1) - lg(n - k + 1)
        return comb + lg(k + a) + lg(n - k + b) - lg(n + a + b) - lg(a) - lg(b) + lg(a + b)

    @staticmethod
    def backward(ctx, g):
        a, b, k, n = ctx.saved_tensors
        common = psi(a + b) - psi(n + a + b)
        da = psi(k + a) - psi(a) + common
        db = psi(n - k + b) - psi(b) + common
        return (g * da).sum(0), (g * db).sum(0), None, None
