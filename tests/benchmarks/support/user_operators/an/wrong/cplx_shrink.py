import torch


class ComplexShrink(torch.autograd.Function):
    """prox of lam * ||z||_1 for complex k-space / wavelet coefficients; lam is a real scalar tensor."""

    @staticmethod
    def forward(ctx, z, lam):
        ctx.save_for_backward(z, lam)
        mag = z.abs()
        keep = mag > lam
        return torch.where(keep, z * (1 - lam / mag.clamp_min(1e-30)), torch.zeros_like(z))

    @staticmethod
    def backward(ctx, g):
        z, lam = ctx.saved_tensors
        mag = z.abs().clamp_min(1e-30)
        keep = mag > lam
        unit = z / mag
        radial = (unit * g).real
        gz = g - (lam / mag) * (g - unit * radial)
        gz = torch.where(keep, gz, torch.zeros_like(gz))
        glam = -torch.where(keep, radial, torch.zeros_like(radial)).sum()
        return gz, glam
