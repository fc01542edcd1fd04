import torch


class EmpiricalCF(torch.autograd.Function):
    """Weighted empirical characteristic function at frequencies t.

    x: (N, D), t: (F, D), weight: (N,)  ->  complex (F,)
    """

    @staticmethod
    def forward(ctx, x, t, weight):
        ctx.save_for_backward(x, t, weight)
        arg = t @ x.t()
        return torch.polar(torch.ones_like(arg), arg) @ weight.to(torch.complex128 if x.dtype == torch.float64 else torch.complex64)

    @staticmethod
    def backward(ctx, grad):
        x, t, weight = ctx.saved_tensors
        arg = t @ x.t()
        e = torch.complex(arg.cos(), arg.sin())
        inner = grad[:, None] * e
        g_weight = inner.real.sum(0)
        g_arg = (1j * inner).real * weight
        return g_arg.t() @ t, g_arg @ x, g_weight
