import torch
from torch.autograd.function import once_differentiable


def _lap(x):
    """D^T D x for forward differences along the last axis"""
    d = x[..., 1:] - x[..., :-1]
    pad = torch.nn.functional.pad
    return pad(d, (1, 0)) - pad(d, (0, 1))


def _cg(matvec, b, iters, tol):
    x = torch.zeros_like(b)
    r = b.clone()
    p = r
    rs = (r * r).sum(-1, keepdim=True)
    stop = tol ** 2 * rs + torch.finfo(b.dtype).tiny
    for _ in range(iters):
        if bool((rs <= stop).all()):
            break
        Ap = matvec(p)
        alpha = rs / (p * Ap).sum(-1, keepdim=True).clamp(min=torch.finfo(b.dtype).tiny)
        x = x + alpha * p
        r = r - alpha * Ap
        new = (r * r).sum(-1, keepdim=True)
        p = r + new / rs.clamp(min=torch.finfo(b.dtype).tiny) * p
        rs = new
    return x


class WLSFilter(torch.autograd.Function):
    """argmin_x sum w (x - y)^2 + lam |D x|^2 per scanline, by conjugate gradients.

    y, w: (B, T), w > 0 confidences; lam: 0-dim tensor >= 0
    """

    @staticmethod
    def forward(ctx, y, w, lam, iters=200, tol=1e-12):
        A = lambda v: w * v + lam * _lap(v)
        x = _cg(A, w * y, iters, tol)
        ctx.save_for_backward(y, w, lam, x)
        ctx.opts = iters, tol
        return x

    @staticmethod
    @once_differentiable
    def backward(ctx, g):
        y, w, lam, x = ctx.saved_tensors
        A = lambda v: w * v + lam * _lap(v)
        v = _cg(A, g, *ctx.opts)
        return w * v, v * (y - x), -(v * _lap(x)).sum(), None, None
