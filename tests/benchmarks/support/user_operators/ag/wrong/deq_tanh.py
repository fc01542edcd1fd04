"""
Deep equilibrium layer,   z* = tanh(z* W^T + x U^T + b),
solved by plain iteration; W should be a contraction. Gradients through the implicit
function theorem, so memory is constant in the number of iterations.
"""
import torch
from torch.autograd.function import once_differentiable


def _iterate(step, start, tol, max_iter):
    z = start
    for _ in range(max_iter):
        z_new = step(z)
        done = (z_new - z).abs().max() <= tol * (1.0 + z.abs().max())
        z = z_new
        if done:
            break
    return z


class DEQLayer(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, W, U, b=None, tol=None, max_iter=500):
        if tol is None:
            tol = 4 * torch.finfo(x.dtype).eps
        inj = x @ U.t()
        if b is not None:
            inj = inj + b
        z = _iterate(lambda z: torch.tanh(z @ W.t() + inj), torch.zeros_like(inj), tol, max_iter)
        ctx.save_for_backward(x, W, U, z)
        ctx.has_bias = b is not None
        ctx.tol, ctx.max_iter = tol, max_iter
        return z

    @staticmethod
    @once_differentiable
    def backward(ctx, grad):
        x, W, U, z = ctx.saved_tensors
        d = 1 - z * z
        adj = _iterate(lambda u: grad + (u * d) @ W.t(), grad, ctx.tol, ctx.max_iter)
        v = adj * d
        gx = v @ U if ctx.needs_input_grad[0] else None
        gW = v.t() @ z if ctx.needs_input_grad[1] else None
        gU = v.t() @ x if ctx.needs_input_grad[2] else None
        gb = v.sum(0) if ctx.has_bias and ctx.needs_input_grad[3] else None
        return gx, gW, gU, gb, None, None
