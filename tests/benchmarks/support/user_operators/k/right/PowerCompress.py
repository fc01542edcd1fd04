import torch


class PowerCompress(torch.autograd.Function):

    @staticmethod
    def forward(ctx, spec, c=0.3, eps=1e-6):
        if not torch.is_complex(spec):
            raise TypeError("spec must be complex")
        ctx.save_for_backward(spec)
        ctx.c, ctx.eps = c, eps
        mag = (spec.real ** 2 + spec.imag ** 2 + eps).sqrt()
        return spec * mag ** (c - 1)

    @staticmethod
    def backward(ctx, grad):
        spec, = ctx.saved_tensors
        p = ctx.c - 1
        mag = (spec.real ** 2 + spec.imag ** 2 + ctx.eps).sqrt()
        radial = (grad * spec.conj()).real
        return grad * mag ** p + p * mag ** (p - 2) * radial * spec, None, None


def compress(spec, c=0.3):
    return PowerCompress.apply(spec, c)
