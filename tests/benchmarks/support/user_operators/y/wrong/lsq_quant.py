import torch


class LSQ(torch.autograd.Function):
    """Learned step size quantisation (Esser et al. 2020).

    x:     any shape
    scale: () or, for per-channel steps, (C,) along ``axis``
    The rounding is passed straight through.
    """

    @staticmethod
    def forward(ctx, x, scale, qn: int, qp: int, grad_scale: float = 1.0, axis=None):
        s = _along(scale, x, axis)
        v = x / s
        ctx.save_for_backward(x, scale)
        ctx.other = qn, qp, grad_scale, axis
        return v.clamp(qn, qp).round() * s

    @staticmethod
    def backward(ctx, grad_output):
        x, scale = ctx.saved_tensors
        qn, qp, grad_scale, axis = ctx.other
        v = x / _along(scale, x, axis)
        small, big = v < qn, v > qp
        middle = ~(small | big)
        grad_x = grad_output * middle
        d = small * qn + big * qp + middle * v.round()
        grad_s = grad_output * d * grad_scale
        if axis is None:
            grad_s = grad_s.sum()
        else:
            grad_s = grad_s.sum([i for i in range(x.dim()) if i != axis % x.dim()])
        return grad_x, grad_s.reshape(scale.shape), None, None, None, None


def _along(scale, x, axis):
    if axis is None:
        return scale
    shape = [1] * x.dim()
    shape[axis] = -1
    return scale.view(shape)
