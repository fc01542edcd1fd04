import numpy as np
import torch
from torch.autograd.function import once_differentiable


def compute_softdtw(D, gamma):
    N, M = D.shape
    R = np.full((N + 2, M + 2), np.inf)
    R[0, 0] = 0
    for j in range(1, M + 1):
        for i in range(1, N + 1):
            z = -np.array([R[i - 1, j - 1], R[i - 1, j], R[i, j - 1]]) / gamma
            zmax = z.max()
            R[i, j] = D[i - 1, j - 1] - gamma * (np.log(np.exp(z - zmax).sum()) + zmax)
    return R


def compute_softdtw_backward(D_, R, gamma):
    N, M = D_.shape
    D = np.zeros((N + 2, M + 2))
    E = np.zeros((N + 2, M + 2))
    D[1:N + 1, 1:M + 1] = D_
    E[-1, -1] = 1
    R[:, -1] = -np.inf
    R[-1, :] = -np.inf
    R[-1, -1] = R[-2, -2]
    for j in range(M, 0, -1):
        for i in range(N, 0, -1):
            a = np.exp((R[i + 1, j] - R[i, j] - D[i + 1, j]) / gamma)
            b = np.exp((R[i, j + 1] - R[i, j] - D[i, j + 1]) / gamma)
            c = np.exp((R[i + 1, j + 1] - R[i, j] - D[i, j]) / gamma)
            E[i, j] = E[i + 1, j] * a + E[i, j + 1] * b + E[i + 1, j + 1] * c
    return E[1:N + 1, 1:M + 1]


class SoftDTW(torch.autograd.Function):
    @staticmethod
    def forward(ctx, D, gamma=1.0):
        R = compute_softdtw(D.detach().cpu().numpy().astype(np.float64), gamma)
        ctx.save_for_backward(D, torch.from_numpy(R))
        ctx.gamma = gamma
        return D.new_tensor(R[-2, -2])

    @staticmethod
    @once_differentiable
    def backward(ctx, grad_output):
        D, R = ctx.saved_tensors
        E = compute_softdtw_backward(D.detach().cpu().numpy().astype(np.float64), R.numpy().copy(), ctx.gamma)
        return grad_output * torch.as_tensor(E, dtype=D.dtype, device=D.device), None
