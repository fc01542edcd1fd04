import torch


def sym(a):
    return 0.5 * (a + a.mT)


class StiefelTangent(torch.autograd.Function):

    @staticmethod
    def forward(ctx, X, G):
        ctx.save_for_backward(X, G)
        return G - X @ sym(X.mT @ G)

    @staticmethod
    def backward(ctx, H):
        X, G = ctx.saved_tensors
        A = sym(X.mT @ H)
        gX = -H @ sym(X.mT @ G) - G @ A
        gG = H.sub_(X @ A)
        return gX, gG
