import torch


class CaponPower(torch.autograd.Function):
    """Capon (MVDR) spatial spectrum 1 / (a^H R^-1 a) with diagonal loading.

    R: (N, N) sample covariance, a: (K, N) steering vectors of K look directions.
    loading is relative to the mean eigenvalue trace(R) / N.
    """

    @staticmethod
    def forward(ctx, R, a, loading=0.01):
        N = R.shape[0]
        eye = torch.eye(N, dtype=R.dtype, device=R.device)
        Rl = R + loading * torch.trace(R).real / N * eye
        x = torch.linalg.solve(Rl, a.transpose(0, 1)).transpose(0, 1)
        P = 1 / (a.conj() * x).sum(-1).real
        ctx.save_for_backward(Rl, a, x, P)
        ctx.loading = loading
        return P

    @staticmethod
    def backward(ctx, g):
        Rl, a, x, P = ctx.saved_tensors
        N = Rl.shape[0]
        y = torch.linalg.solve(Rl.mH, a.transpose(0, 1)).transpose(0, 1)
        w = (g * P ** 2).to(a.dtype)
        gR = torch.einsum("k,ki,kj->ij", w, y, x.conj())
        trace = torch.trace(gR).real * ctx.loading / N
        gR = gR + trace * torch.eye(N, dtype=gR.dtype, device=gR.device)
        ga = -w.unsqueeze(1) * (x + y)
        return gR, ga, None
