import torch


class PowerLawCompress(torch.autograd.Function):
    """Compress the magnitude of a complex spectrogram, keep its phase.

    ``out = z * (|z|^2 + eps) ** ((p - 1) / 2)``
    """

    @staticmethod
    def forward(ctx, spec, p: float = 0.3, eps: float = 1e-8):
        if not spec.is_complex():
            raise TypeError("spec must be complex")
        ctx.save_for_backward(spec)
        ctx.p, ctx.eps = p, eps
        r2 = spec.real.square() + spec.imag.square() + eps
        return spec * r2.pow((p - 1) / 2)

    @staticmethod
    def backward(ctx, grad_out):
        (z,) = ctx.saved_tensors
        p = ctx.p
        m2 = z.real.square() + z.imag.square()
        r2 = m2 + ctx.eps
        half = 0.5 * (p - 1) * r2.pow((p - 3) / 2)
        d_z = r2.pow((p - 1) / 2) + half * m2
        d_zbar = half * z * z
        return grad_out * d_z + grad_out * d_zbar, None, None
