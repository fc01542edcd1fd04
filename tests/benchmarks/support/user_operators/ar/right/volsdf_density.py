import torch


class LaplaceDensity(torch.autograd.Function):
    """VolSDF: density = Psi_beta(-sdf) / beta, Psi the CDF of a zero-mean Laplace with scale beta > 0.

    sdf: any shape, beta: scalar tensor.
    """

    @staticmethod
    def forward(ctx, sdf, beta):
        e = 0.5 * torch.exp(-sdf.abs() / beta)
        ctx.save_for_backward(sdf, beta)
        return torch.where(sdf > 0, e, 1 - e) / beta

    @staticmethod
    def backward(ctx, grad):
        sdf, beta = ctx.saved_tensors
        e = 0.5 * torch.exp(-sdf.abs() / beta)
        psi = torch.where(sdf > 0, e, 1 - e)
        grad_sdf = -grad * e / beta ** 2
        grad_beta = (grad * (e * sdf / beta - psi)).sum() / beta ** 2
        return grad_sdf, grad_beta.reshape(beta.shape)
