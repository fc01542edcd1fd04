import torch
from torch.autograd import Function
from torch.autograd.function import once_differentiable


def _softmin(vals, gamma):
    return -gamma * torch.logsumexp(torch.stack(vals, -1) / -gamma, -1)


def _step(r_next, r_here, d_next, gamma):
    return torch.exp((r_next - r_here - d_next))


class _SoftDTW(Function):
    @staticmethod
    def forward(ctx, D, gamma, bandwidth):
        B, N, M = D.shape
        inf = D.new_full((B,), float("inf"))
        R = [[inf] * (M + 1) for _ in range(N + 1)]
        R[0][0] = D.new_zeros(B)
        for i in range(1, N + 1):
            for j in range(1, M + 1):
                if 0 < bandwidth < abs(i - j):
                    continue
                R[i][j] = D[:, i - 1, j - 1] + _softmin([R[i - 1][j - 1], R[i - 1][j], R[i][j - 1]], gamma)
        ctx.save_for_backward(D, torch.stack([torch.stack(row, -1) for row in R], 1))
        ctx.gamma, ctx.bandwidth = gamma, bandwidth
        return R[N][M]

    @staticmethod
    @once_differentiable
    def backward(ctx, grad_output):
        D, R = ctx.saved_tensors
        B, N, M = D.shape
        E = D.new_zeros(B, N + 2, M + 2)
        E[:, N, M] = 1
        for i in range(N, 0, -1):
            for j in range(M, 0, -1):
                if 0 < ctx.bandwidth < abs(i - j) or (i == N and j == M):
                    continue
                total = D.new_zeros(B)
                for a, b in ((i + 1, j), (i, j + 1), (i + 1, j + 1)):
                    if a > N or b > M or 0 < ctx.bandwidth < abs(a - b):
                        continue
                    total = total + E[:, a, b] * _step(R[:, a, b], R[:, i, j], D[:, a - 1, b - 1], ctx.gamma)
                E[:, i, j] = total
        return grad_output.view(-1, 1, 1) * E[:, 1:-1, 1:-1], None, None


class SoftDTW(torch.nn.Module):
    """
    Soft DTW between batches of sequences with squared euclidean distances.

    Args:
        gamma: sets the amount of smoothing, positive.
        normalize: subtract the mean of the distances of each sequence to itself.
        bandwidth: Sakoe-Chiba bandwidth for pruning, or None. Must reach the end, that
            is, be no smaller than the difference of the lengths.
    """

    def __init__(self, gamma=1.0, normalize=False, bandwidth=None):
        super().__init__()
        if gamma <= 0:
            raise ValueError("gamma must be positive")
        self.normalize = normalize
        self.gamma = float(gamma)
        self.bandwidth = 0 if bandwidth is None else float(bandwidth)

    def _dist(self, x, y):
        return ((x.unsqueeze(2) - y.unsqueeze(1)) ** 2).sum(-1)

    def forward(self, X, Y):
        """X: (batch_size, seq_len_x, dims), Y: (batch_size, seq_len_y, dims) -> (batch_size,)"""
        if X.shape[0] != Y.shape[0] or X.shape[2] != Y.shape[2]:
            raise ValueError("X and Y need one batch size and one number of dimensions")
        if 0 < self.bandwidth < abs(X.shape[1] - Y.shape[1]):
            raise ValueError("bandwidth is smaller than the difference of the lengths")
        out = _SoftDTW.apply(self._dist(X, Y), self.gamma, self.bandwidth)
        if self.normalize:
            xx = _SoftDTW.apply(self._dist(X, X), self.gamma, self.bandwidth)
            yy = _SoftDTW.apply(self._dist(Y, Y), self.gamma, self.bandwidth)
            out = out - (xx + yy) / 2
        return out
