import torch
from torch.autograd.function import once_differentiable


class SuperquadricIO(torch.autograd.Function):
    """Inside-outside function F(x; scale, eps), F < 1 inside.

    x: (N, 3) off the coordinate planes, scale: (3,) > 0, eps: (2,) > 0
    """

    @staticmethod
    def terms(x, scale, eps):
        e1, e2 = eps.unbind()
        u = (x / scale).abs()
        U = u[:, :2] ** (2 / e2)
        A = U.sum(1)
        return u, U, A, A ** (e2 / e1), u[:, 2] ** (2 / e1)

    @staticmethod
    def forward(ctx, x, scale, eps):
        ctx.save_for_backward(x, scale, eps)
        *_, S, Z = SuperquadricIO.terms(x, scale, eps)
        return S + Z

    @staticmethod
    @once_differentiable
    def backward(ctx, g):
        x, scale, eps = ctx.saved_tensors
        e1, e2 = eps.unbind()
        u, U, A, S, Z = SuperquadricIO.terms(x, scale, eps)
        lu = u.log()
        # gradient with respect to log u
        gl = torch.cat([(S / A)[:, None] * U, Z[:, None]], 1) * (2 / e1 * g)[:, None]
        ge1 = -(e2 * S * A.log() + 2 * Z * lu[:, 2]) / e1 ** 2
        ge2 = S * (A.log() / e1 - 2 * (U * lu[:, :2]).sum(1) / (A * e1 * e2))
        return gl / x, -gl.sum(0) / scale, torch.stack([(g * ge1).sum(), (g * ge2).sum()])
