import torch


class LSQ(torch.autograd.Function):
    """Learned step size quantisation with a straight-through estimator (Esser et al. 2020).

    v: any shape, step: positive scalar, qn <= 0 < qp: integer levels.
    """

    @staticmethod
    def forward(ctx, v, step, qn, qp):
        ctx.save_for_backward(v, step)
        ctx.q = qn, qp
        return torch.round(v / step).clamp(qn, qp) * step

    @staticmethod
    def backward(ctx, grad):
        v, step = ctx.saved_tensors
        qn, qp = ctx.q
        x = v / step
        low, high = (x < qn).to(x.dtype), (x > qp).to(x.dtype)
        mid = 1 - low - high
        gs = (grad * (low * qn + high * qp + mid * (x - x.round()))).sum()
        return grad * mid, gs.reshape(step.shape), None, None
