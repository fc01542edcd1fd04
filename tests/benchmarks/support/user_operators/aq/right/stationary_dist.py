import torch


class _Stationary(torch.autograd.Function):
    """pi with pi P = pi, sum(pi) = 1, for an irreducible row-stochastic P (n, n)."""

    @staticmethod
    def system(P):
        n = P.shape[0]
        return torch.eye(n, dtype=P.dtype, device=P.device) - P + torch.ones_like(P)

    @staticmethod
    def forward(P):
        return torch.linalg.solve(_Stationary.system(P).T, torch.ones_like(P[0]))

    @staticmethod
    def setup_context(ctx, inputs, output):
        ctx.save_for_backward(inputs[0], output)

    @staticmethod
    def backward(ctx, g):
        P, pi = ctx.saved_tensors
        u = torch.linalg.solve(_Stationary.system(P), g)
        return torch.outer(pi, u)


def stationary_distribution(logits):
    """Equilibrium populations of a Markov state model with transition matrix softmax(logits, 1)."""
    return _Stationary.apply(torch.softmax(logits, 1))
