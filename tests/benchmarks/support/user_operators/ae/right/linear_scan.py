import torch


class LinearScan(torch.autograd.Function):
    """h_t = a_t * h_{t-1} + x_t along axis 1.

    a, x: (B, T, D); h0: (B, D) or None for zeros. Returns all states (B, T, D).
    """

    @staticmethod
    def forward(ctx, a, x, h0=None):
        h = torch.zeros_like(x[:, 0]) if h0 is None else h0
        states = []
        for t in range(x.shape[1]):
            h = a[:, t] * h + x[:, t]
            states.append(h)
        out = torch.stack(states, dim=1)
        ctx.save_for_backward(a, out, h0)
        return out

    @staticmethod
    def backward(ctx, grad):
        a, states, h0 = ctx.saved_tensors
        first = torch.zeros_like(states[:, 0]) if h0 is None else h0
        prev = torch.cat([first.unsqueeze(1), states[:, :-1]], dim=1)
        carry = torch.zeros_like(states[:, 0])
        dx = []
        for t in range(grad.shape[1] - 1, -1, -1):
            d = grad[:, t] + carry
            dx.append(d)
            carry = a[:, t] * d
        dx = torch.stack(dx[::-1], dim=1)
        dh0 = None if h0 is None else carry
        return dx * prev, dx, dh0
