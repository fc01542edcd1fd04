import torch


class ModReLU(torch.autograd.Function):
    """relu(|z| + b) * z / |z| for complex z (batch, features), real b (features)"""

    EPS = 1e-8

    @staticmethod
    def modulus(z):
        return (z.real ** 2 + z.imag ** 2 + ModReLU.EPS).sqrt()

    @staticmethod
    def forward(ctx, z, b):
        ctx.save_for_backward(z, b)
        m = ModReLU.modulus(z)
        return z * ((m + b).relu() / m)

    @staticmethod
    def backward(ctx, g):
        z, b = ctx.saved_tensors
        m = ModReLU.modulus(z)
        on = (m + b > 0).to(m.dtype)
        proj = (z.conj() * g).real
        gz = g * ((m + b).relu() / m) - z * (proj * on * b / m ** 3)
        gb = (proj * on / m).sum(0)
        return gz, gb
