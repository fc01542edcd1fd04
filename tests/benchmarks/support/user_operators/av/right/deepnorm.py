import torch
from torch import Tensor
from torch.autograd import Function


def _stats(s: Tensor, eps: float) -> tuple[Tensor, Tensor]:
    c = s - s.mean(-1, keepdim=True)
    inv = torch.rsqrt(c.square().mean(-1, keepdim=True) + eps)
    return c * inv, inv


class DeepNorm(Function):
    """Post-norm residual of DeepNet: LN(alpha * x + f) * weight + bias. x, f (..., D)"""

    @staticmethod
    def forward(ctx, x: Tensor, f: Tensor, weight: Tensor, bias: Tensor, alpha: float = 1.0, eps: float = 1e-5):
        ctx.alpha, ctx.eps = alpha, eps
        ctx.save_for_backward(x, f, weight)
        ctx.extra = len(ctx.needs_input_grad) - 4
        return _stats(alpha * x + f, eps)[0] * weight + bias

    @staticmethod
    def backward(ctx, g: Tensor):
        x, f, weight = ctx.saved_tensors
        xhat, inv = _stats(ctx.alpha * x + f, ctx.eps)
        dbias, dweight = (t.reshape(-1, x.size(-1)).sum(0) for t in (g, g * xhat))
        d = g * weight
        ds = inv * (d - d.mean(-1, keepdim=True) - xhat * (d * xhat).mean(-1, keepdim=True))
        dx = ds * ctx.alpha
        return (dx, ds, dweight, dbias) + (None,) * ctx.extra
