import torch


class LSQ(torch.autograd.Function):
    # learned step size quantisation (Esser et al. 2020), straight-through round
    @staticmethod
    def forward(ctx, x, step, qmin, qmax):
        ctx.save_for_backward(x, step)
        ctx.range = qmin, qmax
        return torch.round((x / step).clamp(qmin, qmax)) * step

    @staticmethod
    def backward(ctx, grad):
        x, step = ctx.saved_tensors
        qmin, qmax = ctx.range
        v = x / step
        lo, hi = v < qmin, v > qmax
        inside = ~(lo | hi)
        dstep = torch.where(inside, v.round() - v, lo * float(qmin) + hi * float(qmax))
        return grad * inside, (grad * dstep).sum().reshape(step.shape), None, None
