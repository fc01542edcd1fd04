import torch


class FiniteGramian(torch.autograd.Function):
    @staticmethod
    def forward(ctx, A, B, horizon):
        ctx.save_for_backward(A, B)
        ctx.horizon = horizon
        V, W = B, B @ B.mT
        for _ in range(horizon - 1):
            V = A @ V
            W = W + V @ V.mT
        return W

    @staticmethod
    def backward(ctx, G):
        A, B = ctx.saved_tensors
        S = G + G.mT
        Vs = [B]
        for _ in range(ctx.horizon - 1):
            Vs.append(A @ Vs[-1])
        M = S @ Vs[-1]
        gA = torch.zeros_like(A)
        for V in reversed(Vs[:-1]):
            gA = gA + V @ M.mT
            M = S @ V + A.mT @ M
        return gA, M, None
