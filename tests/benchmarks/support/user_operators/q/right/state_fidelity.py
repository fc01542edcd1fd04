import torch


class StateFidelity(torch.autograd.Function):
    """|<a|b>|^2 of complex state vectors (..., D), not assumed to be normalised."""

    @staticmethod
    def forward(ctx, a, b):
        if not (a.is_complex() and b.is_complex()):
            raise TypeError("states are complex")
        ctx.save_for_backward(a, b)
        ov = (a.conj() * b).sum(-1)
        return ov.real ** 2 + ov.imag ** 2

    @staticmethod
    def backward(ctx, g):
        a, b = ctx.saved_tensors
        ov = (a.conj() * b).sum(-1, keepdim=True)
        k = 2 * g.unsqueeze(-1)
        return k * ov.conj() * b, k * ov * a
