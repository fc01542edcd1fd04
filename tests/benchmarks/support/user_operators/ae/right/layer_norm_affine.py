import torch
from torch.autograd.function import once_differentiable


def _normalise(x, eps):
    mu = x.mean(dim=-1, keepdim=True)
    xc = x - mu
    rstd = torch.rsqrt((xc * xc).mean(dim=-1, keepdim=True) + eps)
    return xc * rstd, rstd


class LayerNormAffine(torch.autograd.Function):
    # x: (..., D); weight, bias: (D,) or None
    @staticmethod
    def forward(ctx, x, weight=None, bias=None, eps=1e-5):
        x_hat, rstd = _normalise(x, eps)
        ctx.save_for_backward(x_hat, rstd, weight)
        y = x_hat
        if weight is not None:
            y = y * weight
        if bias is not None:
            y = y + bias
        return y.clone() if y is x_hat else y

    @staticmethod
    @once_differentiable
    def backward(ctx, dy):
        x_hat, rstd, weight = ctx.saved_tensors
        needs = ctx.needs_input_grad + (False, False)
        need_x, need_w, need_b = needs[0], needs[1], needs[2]
        dx = dw = db = None
        rows = tuple(range(dy.dim() - 1))
        if need_w:
            dw = (dy * x_hat).sum(rows) if rows else dy * x_hat
        if need_b:
            db = dy.sum(rows) if rows else dy.clone()
        if need_x:
            wdy = dy if weight is None else dy * weight
            c1 = wdy.mean(-1, keepdim=True)
            c2 = (wdy * x_hat).mean(-1, keepdim=True)
            dx = (wdy - c1 - x_hat * c2) * rstd
        return dx, dw, db, None
