import torch
from torch.autograd.function import once_differentiable


class MVDRWeights(torch.autograd.Function):
    """Beamformer weights R^-1 d / (d^H R^-1 d).

    cov: (B, n, n) complex spatial covariance, made Hermitian and loaded here
    steer: (B, n) complex steering vectors
    """

    @staticmethod
    def forward(ctx, cov, steer, loading=1e-3):
        n = cov.shape[-1]
        R = 0.5 * (cov + cov.mH) + loading * torch.eye(n, dtype=cov.dtype, device=cov.device)
        y = torch.linalg.solve(R, steer)
        c = (steer.conj() * y).sum(-1, keepdim=True).real
        ctx.save_for_backward(R, steer, y, c)
        return y / c

    @staticmethod
    @once_differentiable
    def backward(ctx, g):
        R, d, y, c = ctx.saved_tensors
        gc = -(g.conj() * y).real.sum(-1, keepdim=True) / c**2
        gy = g / c + gc * d
        q = torch.linalg.solve(R, gy)
        gR = -q.unsqueeze(-1) * y.unsqueeze(-2)
        return 0.5 * (gR + gR.mH), gc * y + q, None
