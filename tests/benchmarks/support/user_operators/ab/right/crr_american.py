import torch
from torch.autograd.function import once_differentiable


class AmericanTree(torch.autograd.Function):
    """Cox-Ross-Rubinstein price of an option; spot, vol and rate are scalar tensors."""

    @staticmethod
    def _nodes(spot, u, i):
        k = torch.arange(-i, i + 1, 2, dtype=spot.dtype, device=spot.device)
        return k, spot * u ** k

    @staticmethod
    def forward(ctx, spot, vol, rate, strike, expiry, steps, kind="put", american=True):
        sign = {"call": 1.0, "put": -1.0}[kind]
        dt = expiry / steps
        u = torch.exp(vol * dt ** 0.5)
        grow = torch.exp(rate * dt)
        p = (grow - 1 / u) / (u - 1 / u)
        assert 0 < p < 1, "the step is too long"
        value = (sign * (AmericanTree._nodes(spot, u, steps)[1] - strike)).clamp(min=0)
        kept, masks = [value], []
        for i in range(steps - 1, -1, -1):
            hold = (p * value[1:] + (1 - p) * value[:-1]) / grow
            now = sign * (AmericanTree._nodes(spot, u, i)[1] - strike)
            early = (now > hold) if american else torch.zeros_like(hold, dtype=torch.bool)
            value = torch.where(early, now, hold)
            kept.append(value)
            masks.append(early)
        ctx.save_for_backward(spot, u, grow, p, *kept, *masks)
        ctx.conf = sign, strike, dt, steps
        return value[0].clone()

    @staticmethod
    @once_differentiable
    def backward(ctx, g):
        sign, strike, dt, steps = ctx.conf
        spot, u, grow, p, *rest = ctx.saved_tensors
        values, early = rest[:steps + 1][::-1], rest[steps + 1:][::-1]
        g_spot, g_u, g_p, g_grow = (torch.zeros_like(spot) for _ in range(4))
        adj = g.reshape(1)
        for i in range(steps + 1):
            k, node = AmericanTree._nodes(spot, u, i)
            if i == steps:
                paid = adj * (sign * (node - strike) > 0)
            else:
                paid = adj * early[i]
            g_node = sign * paid
            g_spot = g_spot + (g_node * node).sum() / spot
            g_u = g_u + (g_node * node * k).sum() / u
            if i == steps:
                break
            adj = adj - paid
            up, down = values[i + 1][1:], values[i + 1][:-1]
            g_p = g_p + (adj * (up - down)).sum() / grow
            g_grow = g_grow - (adj * (p * up + (1 - p) * down)).sum() / grow ** 2
            nxt = torch.zeros_like(values[i + 1])
            nxt[1:] += adj * p / grow
            nxt[:-1] += adj * (1 - p) / grow
            adj = nxt
        d = 1 / u
        g_grow = g_grow + g_p / (u - d)
        g_u = g_u + g_p * (d * d * (u - d) - (grow - d) * (1 + d * d)) / (u - d) ** 2
        return g_spot, g_u * u * dt ** 0.5, g_grow * grow * dt, None, None, None, None, None
