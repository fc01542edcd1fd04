import torch


class ComplexCardioid(torch.autograd.Function):
    @staticmethod
    def forward(ctx, z):
        ctx.save_for_backward(z)
        return 0.5 * (1 + torch.cos(z.angle())) * z

    @staticmethod
    def backward(ctx, grad):
        (z,) = ctx.saved_tensors
        r = z.abs()
        cos, sin = z.real / r, z.imag / r
        dz = 0.5 * (1 + cos) + 0.25j * sin
        dzbar = -0.25j * sin * z / z.conj()
        return grad * dz.conj() + grad.conj() * dzbar
