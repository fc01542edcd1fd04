import torch
from torch.autograd.function import once_differentiable


def qrange(bits, signed):
    return (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1) if signed else (0, 2 ** bits - 1)


class _LSQ(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, step, qn, qp, grad_scale):
        ctx.save_for_backward(x, step)
        ctx.spec = (qn, qp, grad_scale)
        return (x / step).clamp(qn, qp).round() * step

    @staticmethod
    @once_differentiable
    def backward(ctx, g):
        x, step = ctx.saved_tensors
        qn, qp, grad_scale = ctx.spec
        v = x / step
        low, high = v < qn, v > qp
        inside = ~(low | high)
        gx = g * inside
        ds = (v.round() - v) * inside + low * qn + high * qp
        gstep = (g * ds).sum().reshape(step.shape) * grad_scale
        return gx, gstep, None, None, None


def lsq_quantize(x, step, bits=8, signed=True):
    """Learned step size quantisation. Straight-through for x inside the range; the step's gradient
    is scaled with 1 / sqrt(numel * qp). ``step``: tensor with one element."""
    qn, qp = qrange(bits, signed)
    return _LSQ.apply(x, step, qn, qp, (x.numel() * qp) ** -0.5)
