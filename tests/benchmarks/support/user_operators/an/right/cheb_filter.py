import torch
from torch import nn


def _basis(x, L, K):
    T = [x]
    if K > 1:
        T.append(L @ x)
    while len(T) < K:
        T.append(2 * L @ T[-1] - T[-2])
    return T


class ChebFunction(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, L, theta):
        ctx.save_for_backward(x, L, theta)
        return sum(t @ th for t, th in zip(_basis(x, L, len(theta)), theta))

    @staticmethod
    def backward(ctx, g):
        x, L, theta = ctx.saved_tensors
        K = len(theta)
        gx = gtheta = None
        if ctx.needs_input_grad[2]:
            gtheta = torch.stack([t.t() @ g for t in _basis(x, L, K)])
        if ctx.needs_input_grad[0]:
            # Clenshaw
            b1 = b2 = torch.zeros_like(x)
            for k in range(K - 1, 0, -1):
                b1, b2 = g @ theta[k].t() + 2 * L.t() @ b1 - b2, b1
            gx = g @ theta[0].t() + L.t() @ b1 - b2
        return gx, None, gtheta


class ChebFilter(nn.Module):
    """x (N, Fin), rescaled Laplacian L (N, N), any, not learned -> (N, Fout)"""

    def __init__(self, fin, fout, K=3):
        super().__init__()
        self.theta = nn.Parameter(torch.randn(K, fin, fout) / (K * fin) ** 0.5)

    def forward(self, x, L):
        return ChebFunction.apply(x, L, self.theta)
