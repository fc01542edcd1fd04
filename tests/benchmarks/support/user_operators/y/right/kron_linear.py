import torch


class KronLinear(torch.autograd.Function):
    # y = (A kron B) x for every row of x: A (p, a), B (q, b), x (N, a*b) -> (N, p*q)
    @staticmethod
    def forward(ctx, x, A, B):
        ctx.save_for_backward(x, A, B)
        X = x.reshape(-1, A.shape[1], B.shape[1])
        return (A @ X @ B.t()).flatten(1)

    @staticmethod
    def backward(ctx, g):
        x, A, B = ctx.saved_tensors
        X = x.reshape(-1, A.shape[1], B.shape[1])
        G = g.reshape(-1, A.shape[0], B.shape[0])
        dX = A.t() @ G @ B
        dA = (G @ B @ X.mT).sum(0)
        dB = (G.mT @ A @ X).sum(0)
        return dX.flatten(1), dA, dB
