import torch


class PowerLawCompress(torch.autograd.Function):
    """Compress the magnitude of a complex spectrogram, keep its phase.

    Y = X * (|X|^2 + eps)^((power - 1) / 2), X complex of any shape.
    """

    @staticmethod
    def forward(ctx, spec, power=0.3, eps=1e-8):
        if not spec.is_complex():
            raise TypeError("spec must be complex")
        ctx.save_for_backward(spec)
        ctx.q = 0.5 * (power - 1.0)
        ctx.eps = eps
        mag2 = spec.real ** 2 + spec.imag ** 2 + eps
        return spec * mag2 ** ctx.q

    @staticmethod
    def backward(ctx, grad_output):
        spec, = ctx.saved_tensors
        mag2 = spec.real ** 2 + spec.imag ** 2 + ctx.eps
        inner = (grad_output.conj() * spec).real
        grad = grad_output * mag2 ** ctx.q + 2 * ctx.q * mag2 ** (ctx.q - 1) * inner * spec
        return grad, None, None
