import torch
import torch.nn as nn


def lap(u):
    return (torch.roll(u, 1, -1) + torch.roll(u, -1, -1)
            + torch.roll(u, 1, -2) + torch.roll(u, -1, -2) - 4 * u)


class GrayScottStep(torch.autograd.Function):

    @staticmethod
    def forward(ctx, u, v, du, dv, feed, kill, dt):
        ctx.save_for_backward(u, v, du, dv, feed, kill)
        ctx.dt = dt
        uvv = u * v * v
        return (u + dt * (du * lap(u) - uvv + feed * (1 - u)),
                v + dt * (dv * lap(v) + uvv - (feed + kill) * v))

    @staticmethod
    def backward(ctx, gu, gv):
        u, v, du, dv, feed, kill = ctx.saved_tensors
        dt = ctx.dt
        net = gv - gu
        gu_in = gu + dt * (du * lap(gu) + net * v * v - feed * gu)
        gv_in = gv + dt * (dv * lap(gv) + 2 * net * u * v - (feed + kill) * gv)
        gdu, gdv = dt * (gu * lap(u)).sum(), dt * (gv * lap(v)).sum()
        gkill = -dt * (gv * v).sum()
        gfeed = dt * (gu * (1 - u)).sum() + gkill
        return gu_in, gv_in, gdu, gdv, gfeed, gkill, None


class GrayScott(nn.Module):
    def __init__(self, steps=2, dt=1.0):
        super().__init__()
        self.du = nn.Parameter(torch.tensor(0.16))
        self.dv = nn.Parameter(torch.tensor(0.08))
        self.feed = nn.Parameter(torch.tensor(0.035))
        self.kill = nn.Parameter(torch.tensor(0.06))
        self.steps = steps
        self.dt = dt

    def forward(self, u, v):
        for _ in range(self.steps):
            u, v = GrayScottStep.apply(u, v, self.du, self.dv, self.feed, self.kill, self.dt)
        return u, v
