import torch
from torch.autograd.function import once_differentiable


class _GeM(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, p, eps):
        xc = x.clamp(min=eps)
        xp = xc ** p
        m = xp.flatten(2).mean(-1)
        y = m ** (1 / p)
        ctx.save_for_backward(x, p, m, y)
        ctx.eps = eps
        return y

    @staticmethod
    @once_differentiable
    def backward(ctx, gy):
        x, p, m, y = ctx.saved_tensors
        xc = x.clamp(min=ctx.eps)
        tail = (...,) + (None,) * (x.dim() - 2)
        count = x[0, 0].numel()
        outer = gy * y / m
        gx = outer[tail] * xc ** (p - 1) / count
        gx = gx * (x >= ctx.eps)
        gp = None
        if ctx.needs_input_grad[1]:
            m_log = (xc ** p * xc.log()).flatten(2).mean(-1)
            gp = (gy * y * m_log / (p * m)).sum().reshape(p.shape)
        return gx, gp, None


def gem(x, p, eps: float = 1e-6):
    """Generalised mean over the spatial axes, (B, C, *) -> (B, C); ``p`` is a tensor with one element."""
    return _GeM.apply(x, p, eps)
