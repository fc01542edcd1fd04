import torch
from torch.autograd import Function


class RabiFlop(Function):
    """Excited-state population after a square pulse.

    omega, delta, time of one shape; zero is allowed everywhere.
    """

    @staticmethod
    def _split(omega, delta, time):
        w2 = omega ** 2 + delta ** 2
        small = w2 * time ** 2 < 1e-2
        return w2, small, torch.where(small, torch.ones_like(w2), w2)

    @staticmethod
    def forward(ctx, omega, delta, time):
        ctx.save_for_backward(omega, delta, time)
        w2, small, ws = RabiFlop._split(omega, delta, time)
        y = w2 * time ** 2
        series = time ** 2 / 4 * (1 - y / 12 + y ** 2 / 360 - y ** 3 / 20160)
        return omega ** 2 * torch.where(small, series, torch.sin(ws.sqrt() * time / 2) ** 2 / ws)

    @staticmethod
    def backward(ctx, g):
        omega, delta, time = ctx.saved_tensors
        w2, small, ws = RabiFlop._split(omega, delta, time)
        ws, y = w2, w2 * time ** 2
        w = ws.sqrt()
        sin_half = torch.sin(w * time / 2) ** 2
        s = torch.where(small, time ** 2 / 4 * (1 - y / 12 + y ** 2 / 360 - y ** 3 / 20160), sin_half / ws)
        ds = time * torch.sin(w * time) / (4 * w ** 3) - sin_half / ws ** 2
        dt = torch.where(small, time / 2 * (1 - y / 6 + y ** 2 / 120 - y ** 3 / 5040), torch.sin(w * time) / (2 * w))
        g_omega = g * 2 * omega * (s + omega ** 2 * ds)
        g_delta = g * 2 * delta * omega ** 2 * ds
        return g_omega, g_delta, g * omega ** 2 * dt
