import torch


class Cardioid(torch.autograd.Function):
    @staticmethod
    def forward(ctx, z):
        ctx.save_for_backward(z)
        r = z.abs().clamp(min=1e-12)
        return 0.5 * (1 + z.real / r) * z

    @staticmethod
    def backward(ctx, g):
        z, = ctx.saved_tensors
        r = z.abs().clamp(min=1e-12)
        x, y = z.real, z.imag
        s = (g.conj() * z).real
        w = 0.5 * s * (y / r) / r / r
        return 0.5 * (1 + x / r) * g + torch.complex(w * y, -w * x)
