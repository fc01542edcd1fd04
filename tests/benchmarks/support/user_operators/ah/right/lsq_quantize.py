import torch
from torch.autograd import Function
from torch.autograd.function import once_differentiable


class LSQQuantize(Function):
    """Learned step size quantisation with one step for each channel of axis 0.

    The gradient of ``x`` passes within the range and is cut off outside. The gradient of the step is
    ``round(x / step) - x / step`` within and the bound outside, times ``grad_scale``.

    x: (C, ...), step: (C,) positive
    """

    @staticmethod
    def forward(ctx, x, step, qmin=-8, qmax=7, grad_scale=1.0):
        if step.dim() != 1 or step.shape[0] != x.shape[0]:
            raise ValueError("one step for each channel is needed")
        s = step.view(-1, *[1] * (x.dim() - 1))
        ctx.save_for_backward(x, step)
        ctx.conf = qmin, qmax, grad_scale
        return (x / s).round().clamp(qmin, qmax) * s

    @staticmethod
    @once_differentiable
    def backward(ctx, grad):
        x, step = ctx.saved_tensors
        qmin, qmax, grad_scale = ctx.conf
        v = x / step.view(-1, *[1] * (x.dim() - 1))
        low, high = v < qmin, v > qmax
        inside = ~(low | high)
        slope = torch.where(low, float(qmin), torch.where(high, float(qmax), v.round() - v))
        grad_step = (grad * slope * grad_scale).flatten(1).sum(1)
        return grad  * inside, grad_step, None, None, None


def lsq_quantize(x, step, bits=4, signed=True, grad_scale=None):
    if signed:
        qmin, qmax = -(2 ** (bits - 1)), 2 ** (bits - 1) - 1
    else:
        qmin, qmax = 0, 2**bits - 1
    if grad_scale is None:
        grad_scale = (x[0].numel() * qmax) ** -0.5
    return LSQQuantize.apply(x, step, qmin, qmax, grad_scale)
