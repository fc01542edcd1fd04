import torch
from torch import nn
from torch.autograd.function import once_differentiable


class _Rollout(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x0, u, A, B):
        states = [x0]
        for t in range(u.shape[1]):
            states.append(states[-1] @ A.t() + u[:, t] @ B.t())
        xs = torch.stack(states, dim=1)  # (N, T + 1, S)
        ctx.save_for_backward(xs, u, A, B)
        return xs[:, 1:].clone()

    @staticmethod
    @once_differentiable
    def backward(ctx, grad_xs):
        xs, u, A, B = ctx.saved_tensors
        grad_A, grad_B = torch.zeros_like(A), torch.zeros_like(B)
        grad_u = torch.zeros_like(u)
        lam = torch.zeros_like(xs[:, 0])
        for t in range(u.shape[1] - 1, -1, -1):
            lam = lam + grad_xs[:, t]
            grad_A = grad_A + lam.t() @ xs[:, t]
            grad_B = grad_B + lam.t() @ u[:, t]
            grad_u[:, t] = lam @ B
            lam = lam @ A
        return lam, grad_u, grad_A, grad_B


class LinearDynamics(nn.Module):
    """x[t+1] = A x[t] + B u[t], rolled out over a horizon.

    x0 (N, S) and u (N, T, C) give x[1..T] as (N, T, S).
    """

    def __init__(self, A, B):
        super().__init__()
        self.A = nn.Parameter(torch.as_tensor(A))
        self.B = nn.Parameter(torch.as_tensor(B))

    def forward(self, x0, u):
        return _Rollout.apply(x0, u, self.A, self.B)
