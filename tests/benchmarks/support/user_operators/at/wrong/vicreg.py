import torch
from torch.autograd import Function


def off_diagonal(m):
    return m - torch.diag(torch.diagonal(m))


class _VICReg(Function):
    @staticmethod
    def forward(ctx, x, y, sim_coeff, std_coeff, cov_coeff):
        ctx.save_for_backward(x, y)
        ctx.coeffs = sim_coeff, std_coeff, cov_coeff
        loss = sim_coeff * (x - y).pow(2).mean()
        n, d = x.shape
        for z in (x, y):
            z = z - z.mean(0)
            std = torch.sqrt(z.pow(2).sum(0) / (n - 1) + 1e-4)
            cov = z.t() @ z / (n - 1)
            loss = loss + std_coeff / 2 * (1 - std).clamp(min=0).mean()
            loss = loss + cov_coeff / d * off_diagonal(cov).pow(2).sum()
        return loss

    @staticmethod
    def backward(ctx, grad):
        sim_coeff, std_coeff, cov_coeff = ctx.coeffs
        x, y = ctx.saved_tensors
        n, d = x.shape
        g_sim = 2 * sim_coeff * (x - y) / x.numel()
        out = []
        for z, g in ((x, g_sim), (y, -g_sim)):
            z = z - z.mean(0)
            std = torch.sqrt(z.pow(2).sum(0) / (n - 1) + 1e-4)
            cov = z.t() @ z / (n - 1)
            g = g - std_coeff / (2 * d * n) * (std < 1) * z / std
            g = g + 4 * cov_coeff / (d * (n - 1)) * (z @ off_diagonal(cov))
            out.append(grad * g)
        return (*out, None, None, None)


def vicreg_loss(x, y, sim_coeff=25.0, std_coeff=25.0, cov_coeff=1.0):
    """VICReg (Bardes et al. 2022), x and y (N, D) expanded representations of two views."""
    return _VICReg.apply(x, y, sim_coeff, std_coeff, cov_coeff)
