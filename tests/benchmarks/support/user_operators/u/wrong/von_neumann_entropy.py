import torch


class VonNeumannEntropy(torch.autograd.Function):
    """S = -tr(rho log rho) of density matrices (..., d, d) of full rank."""

    @staticmethod
    def forward(ctx, rho):
        ctx.save_for_backward(rho)
        lam = torch.linalg.eigvalsh((rho + rho.mH) / 2)
        return -(lam * lam.log()).sum(-1)

    @staticmethod
    def backward(ctx, g):
        (rho,) = ctx.saved_tensors
        lam, U = torch.linalg.eigh((rho + rho.mH) / 2)
        d = (U * (-lam.log()).unsqueeze(-2)) @ U.mH
        return g[..., None, None] * d
