import torch
from torch.autograd.function import once_differentiable


class GatedScan(torch.autograd.Function):
    """h_t = a_t * h_{t-1} + x_t along dim 1, the state cleared before positions where reset is true.

    a, x: (batch, time, channels); reset: (batch, time) bool or None; h0: (batch, channels) or None.
    Returns all the states and the last one.
    """

    @staticmethod
    def forward(ctx, a, x, reset=None, h0=None):
        if reset is not None:
            a_eff = a.masked_fill(reset[..., None], 0.0)
        else:
            a_eff = a
        h = x.new_zeros(x.shape[0], x.shape[2]) if h0 is None else h0
        states = []
        for t in range(x.shape[1]):
            h = a_eff[:, t] * h + x[:, t]
            states.append(h)
        ys = torch.stack(states, 1)
        ctx.save_for_backward(a, reset, h0, ys)
        return ys, h.clone()

    @staticmethod
    @once_differentiable
    def backward(ctx, gy, glast):
        a, reset, h0, ys = ctx.saved_tensors
        keep = torch.ones_like(a) if reset is None else (~reset)[..., None].to(a.dtype).expand_as(a)
        ga, gx = torch.zeros_like(a), torch.zeros_like(a)
        carry = glast
        for t in reversed(range(a.shape[1])):
            d = gy[:, t] + carry
            gx[:, t] = d
            if t > 0:
                ga[:, t] = d * ys[:, t - 1] * keep[:, t]
            elif h0 is not None:
                ga[:, t] = d * h0 * keep[:, t]
            carry = d * a[:, t]
        return ga, gx, None, carry if h0 is not None else None
