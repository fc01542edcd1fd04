import torch


class LSQQuantize(torch.autograd.Function):
    """Learned step size quantization, Esser et al. 2020.

    The rounding is not differentiable: the gradients below are the paper's surrogates
    (straight-through for x, eq. 3 for the step size), not derivatives of the forward.
    x any shape, s scalar tensor > 0.
    """

    @staticmethod
    def forward(ctx, x, s, qn, qp, grad_scale=1.0):
        ctx.save_for_backward(x, s)
        ctx.qn, ctx.qp, ctx.grad_scale = qn, qp, grad_scale
        return (x / s).clamp(qn, qp).round() * s

    @staticmethod
    def backward(ctx, grad):
        x, s = ctx.saved_tensors
        qn, qp = ctx.qn, ctx.qp
        v = x / s
        low, high = v <= qn, v >= qp
        mid = ~(low | high)
        grad_x = grad * mid
        ds = torch.where(mid, v.round(), torch.where(low, torch.full_like(v, qn), torch.full_like(v, qp)))
        grad_s = (grad * ds).sum() * ctx.grad_scale
        return grad_x, grad_s, None, None, None
