import torch


class _Annuity(torch.autograd.Function):
    @staticmethod
    def forward(ctx, q, rate):
        ctx.save_for_backward(q, rate)
        v = 1 / (1 + rate)
        value = torch.ones_like(q[..., 0])
        for k in range(q.size(-1) - 2, -1, -1):
            value = 1 + v * (1 - q[..., k]) * value
        return value

    @staticmethod
    def backward(ctx, g):
        q, rate = ctx.saved_tensors
        v = 1 / (1 + rate)
        n = q.size(-1)
        tail = [torch.zeros_like(g)] * (n + 1)
        for k in range(n - 1, -1, -1):
            tail[k] = 1 + v * (1 - q[..., k]) * tail[k + 1]
        front = [torch.ones_like(g)]
        for k in range(n - 1):
            front.append(front[-1] * v * (1 - q[..., k]))
        front = torch.stack(front, -1)
        after = torch.stack(tail[1:], -1)
        g = g.unsqueeze(-1)
        nxt = torch.cat([front[..., 1:], torch.zeros_like(front[..., :1])], -1)
        gq = -g * nxt * after / (1 - q)
        g_rate = -(g * front * (1 - q) * after).sum() * v * v
        return gq, g_rate


def life_annuity(q, rate):
    """Expected present value of a temporary annuity-due of 1 a year.

    q (..., n) yearly death probabilities in [0, 1] (1 at the closing age), rate scalar interest.
    """
    return _Annuity.apply(q, rate)
