import torch


class FMInteraction(torch.autograd.Function):
    # second-order term of a factorisation machine, 0.5 * ((sum v)^2 - sum v^2); v: (batch, fields, dim)
    @staticmethod
    def forward(ctx, v, present=None, reduce=True):
        ctx.save_for_backward(v, present)
        ctx.reduce = reduce
        m = v if present is None else v * present[..., None].to(v.dtype)
        out = 0.5 * (m.sum(1).square() - m.square().sum(1))
        return out.sum(-1) if reduce else out

    @staticmethod
    def backward(ctx, grad):
        v, present = ctx.saved_tensors
        if ctx.reduce:
            grad = grad[:, None]
        mask = 1 if present is None else present[..., None].to(v.dtype)
        m = v * mask
        dv = (m.sum(1, keepdim=True) - m) * grad[:, None]
        return dv, None, None
