import torch


class LogAbsWavefunction(torch.autograd.Function):
    """log |sum_k c_k det Phi_k| for walkers (B, K, N, N) and determinant weights (K,)."""

    @staticmethod
    def forward(ctx, phi, c):
        det = torch.linalg.det(phi)
        psi = (c * det).sum(-1)
        ctx.save_for_backward(phi, c)
        return psi.abs().log()

    @staticmethod
    def backward(ctx, g):
        phi, c = ctx.saved_tensors
        det = torch.linalg.det(phi)
        psi = (c * det).sum(-1)
        ratio = (g / psi)[:, None] * det
        inv_t = torch.linalg.inv(phi).transpose(-1, -2)
        return (ratio * c)[..., None, None] * inv_t, ratio.sum(0)
