import torch

cross = torch.linalg.cross


class BorisPush(torch.autograd.Function):
    @staticmethod
    def forward(ctx, v, E, B, h):
        ctx.save_for_backward(v, E, B)
        ctx.h = h
        t = h * B
        s = 2 * t / (1 + (t * t).sum(-1, keepdim=True))
        minus = v + h * E
        prime = minus + cross(minus, t)
        return minus + cross(prime, s) + h * E

    @staticmethod
    def backward(ctx, g):
        v, E, B = ctx.saved_tensors
        h = ctx.h
        t = h * B
        n = 1 + (t * t).sum(-1, keepdim=True)
        s = 2 * t / n
        minus = v + h * E
        prime = minus + cross(minus, t)

        g_prime = cross(s, g)
        g_s = cross(g, prime)
        g_minus = g + g_prime + cross(t, g_prime)
        g_t = cross(g_prime, minus) + 2 * g_s / n - 4 * t * (t * g_s).sum(-1, keepdim=True) / n ** 2
        return g_minus, h * (g_minus + g), h * g_t, None
