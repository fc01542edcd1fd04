import torch
import torch.nn as nn


def _chebyshev(t, degree, first):
    """T_0 .. T_degree for first = t, U_0 .. U_degree for first = 2 t, along a new last axis"""
    p = [torch.ones_like(t), first]
    for _ in range(2, degree + 1):
        p.append(2 * t * p[-1] - p[-2])
    return torch.stack(p[:degree + 1], -1)


class ChebyKANFunction(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, coeff):
        ctx.save_for_backward(x, coeff)
        t = x.tanh()
        return torch.einsum("bid,iod->bo", _chebyshev(t, coeff.shape[-1] - 1, t), coeff)

    @staticmethod
    def backward(ctx, gy):
        x, coeff = ctx.saved_tensors
        t = x.tanh()
        deg = coeff.shape[-1] - 1
        gx = gc = None
        if ctx.needs_input_grad[0]:
            n = torch.arange(1, deg + 1, device=x.device)
            dT = n * _chebyshev(t, deg - 1, 2 * t)
            gx = torch.einsum("bo,iod,bid->bi", gy, coeff[..., 1:], dT) * (1 - t * t)
        if ctx.needs_input_grad[1]:
            gc = torch.einsum("bo,bid->iod", gy, _chebyshev(t, deg, t))
        return gx, gc


class ChebyKANLayer(nn.Module):
    def __init__(self, input_dim, output_dim, degree):
        super().__init__()
        assert degree >= 1
        self.coeff = nn.Parameter(torch.empty(input_dim, output_dim, degree + 1))
        nn.init.normal_(self.coeff, std=1 / (input_dim * (degree + 1)))

    def forward(self, x):
        return ChebyKANFunction.apply(x, self.coeff)
