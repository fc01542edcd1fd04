import torch
import torch.nn as nn
from torch.autograd.function import once_differentiable


class CayleyMap(torch.autograd.Function):
    """Q = (I + S)^-1 (I - S) for S = W - W^T"""

    @staticmethod
    def forward(ctx, W):
        n = W.shape[0]
        eye = torch.eye(n, dtype=W.dtype, device=W.device)
        S = W - W.t()
        Q = torch.linalg.solve(eye + S, eye - S)
        ctx.save_for_backward(S, Q)
        return Q

    @staticmethod
    @once_differentiable
    def backward(ctx, gQ):
        S, Q = ctx.saved_tensors
        eye = torch.eye(S.shape[0], dtype=S.dtype, device=S.device)
        # dQ = -(I + S)^-1 dS (I + Q)
        left = torch.linalg.solve((eye + S).t(), gQ)
        gS = -left @ (eye + Q).t()
        return gS - gS.t()


class CayleyLinear(nn.Module):
    """Orthogonal linear layer with a learned sign-free scale"""

    def __init__(self, n, scale=False):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(n, n) * 0.5)
        self.log_scale = nn.Parameter(torch.zeros(n)) if scale else None

    def forward(self, x):
        y = x @ CayleyMap.apply(self.weight).t()
        return y if self.log_scale is None else y * self.log_scale.exp()
