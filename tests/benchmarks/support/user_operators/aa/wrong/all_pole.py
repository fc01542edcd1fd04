import torch


def _recurse(x, a):
    T, K = x.shape[-1], a.shape[-1]
    y = []
    for t in range(T):
        v = x[:, t]
        for k in range(1, min(K, t) + 1):
            v = v - a[:, k - 1] * y[t - k]
        y.append(v)
    return torch.stack(y, -1)


class AllPole(torch.autograd.Function):
    """y[t] = x[t] - sum_k a[k] y[t-k] with zero initial state.

    x: (B, T), a: (B, K)
    The adjoint of the filter is the filter itself run backwards in time.
    """

    @staticmethod
    def forward(ctx, x, a):
        y = _recurse(x, a)
        ctx.save_for_backward(a, y)
        return y

    @staticmethod
    def backward(ctx, gy):
        a, y = ctx.saved_tensors
        gx = AllPole.apply(gy.flip(-1), a.detach()).flip(-1)
        if not ctx.needs_input_grad[1]:
            return gx, None
        T = y.shape[-1]
        ga = []
        for k in range(1, a.shape[-1] + 1):
            if k >= T:
                ga.append(torch.zeros_like(a[:, 0]))
            else:
                ga.append(-(gx[:, k:] * y[:, : T - k]).sum(-1))
        return gx, torch.stack(ga, -1)
