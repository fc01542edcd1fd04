import torch
from torch.autograd.function import once_differentiable


class _AccumulateFlow(torch.autograd.Function):
    @staticmethod
    def forward(ctx, runoff, keep, downstream, order):
        q = runoff.clone()
        for i in order.tolist():
            d = int(downstream[i])
            if d >= 0:
                q[..., d] += keep[i] * q[..., i]
        ctx.save_for_backward(q, keep, downstream, order)
        return q

    @staticmethod
    @once_differentiable
    def backward(ctx, grad_q):
        q, keep, downstream, order = ctx.saved_tensors
        lam = grad_q.clone()
        for i in reversed(order.tolist()):
            d = int(downstream[i])
            if d >= 0:
                lam[..., i] += keep[i] * lam[..., d]
        g_keep = None
        if ctx.needs_input_grad[1]:
            contrib = lam[..., downstream] * q * (downstream >= 0)
            g_keep = contrib.reshape(-1, keep.numel()).sum(0)
        return lam, g_keep, None, None


def route_runoff(runoff, keep, downstream, order):
    """Accumulate lateral runoff along a river tree.

    runoff (..., R) by reach, keep (R,) the fraction of a reach's discharge that gets to the next,
    downstream (R,) index of the reach below, -1 at the sea, order (R,) from headwaters to mouth.
    """
    return _AccumulateFlow.apply(runoff, keep, downstream, order)
