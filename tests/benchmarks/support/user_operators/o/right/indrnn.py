import torch


class IndRNN(torch.autograd.Function):
    """Independently recurrent layer, h_t = relu(x_t + u * h_{t-1}).

    x: (T, B, H), u: (H,), h0: (B, H) or None. With reverse=True the recursion runs from the last step.
    """

    @staticmethod
    def forward(ctx, x, u, h0=None, reverse=False):
        if u.shape != x.shape[2:] or (h0 is not None and h0.shape != x.shape[1:]):
            raise ValueError("shapes of u or h0 do not fit x")
        steps = range(x.size(0))
        h = torch.zeros_like(x[0]) if h0 is None else h0
        out = [None] * x.size(0)
        for t in reversed(steps) if reverse else steps:
            h = torch.relu(x[t] + u * h)
            out[t] = h
        out = torch.stack(out)
        ctx.save_for_backward(u, h0, out)
        ctx.reverse = reverse
        return out

    @staticmethod
    def backward(ctx, grad):
        u, h0, out = ctx.saved_tensors
        T = out.size(0)
        steps = range(T) if ctx.reverse else reversed(range(T))
        carry = torch.zeros_like(out[0])
        g_u = torch.zeros_like(u)
        g_x = [None] * T
        for t in steps:
            d = (grad[t] + carry) * (out[t] > 0)
            g_x[t] = d
            prev = t + 1 if ctx.reverse else t - 1
            if 0 <= prev < T:
                g_u = g_u + (d * out[prev]).sum(0)
            elif h0 is not None:
                g_u = g_u + (d * h0).sum(0)
            carry = d * u
        return torch.stack(g_x), g_u, carry if h0 is not None else None, None
