import torch


class NeuralSort(torch.autograd.Function):
    # scores (B, n) -> relaxed permutation matrix (B, n, n), Grover et al. 2019
    @staticmethod
    def forward(ctx, s, tau):
        n = s.shape[1]
        a = (s[:, :, None] - s[:, None, :]).abs().sum(2)
        k = n + 1 - 2 * torch.arange(1, n + 1, dtype=s.dtype, device=s.device)
        P = torch.softmax((k[:, None] * s[:, None, :] - a[:, None, :]) / tau, -1)
        ctx.save_for_backward(s, P)
        ctx.tau = tau
        return P

    @staticmethod
    def backward(ctx, g):
        s, P = ctx.saved_tensors
        n = s.shape[1]
        k = n + 1 - 2 * torch.arange(1, n + 1, dtype=s.dtype, device=s.device)
        gl = P * (g - (g * P).sum(-1, keepdim=True)) / ctx.tau
        ga = -gl.sum(1)
        sgn = torch.sign(s[:, :, None] - s[:, None, :])
        gs = (gl * k[:, None]).sum(1)
        return gs + (sgn * (ga[:, :, None] + ga[:, None, :])).sum(2), None
