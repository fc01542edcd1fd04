import torch


class GratingOrders(torch.autograd.Function):
    """Diffraction angles [rad] of a transmission grating; evanescent orders give 0.

    incidence (N,), wave (L,), pitch scalar in the units of wave, orders (M,) long -> (N, L, M)
    """

    @staticmethod
    def _sine(incidence, wave, pitch, orders):
        s = torch.sin(incidence)[:, None, None] + orders * wave[:, None] / pitch
        return s.abs() < 1, s

    @staticmethod
    def forward(ctx, incidence, wave, pitch, orders):
        ctx.save_for_backward(incidence, wave, pitch, orders)
        on, s = GratingOrders._sine(incidence, wave, pitch, orders)
        return torch.asin(torch.where(on, s, torch.zeros_like(s)))

    @staticmethod
    def backward(ctx, g):
        incidence, wave, pitch, orders = ctx.saved_tensors
        on, s = GratingOrders._sine(incidence, wave, pitch, orders)
        s = torch.where(on, s, torch.zeros_like(s))
        gs = g * on / torch.sqrt(1 - s * s)
        per_order = gs * orders / pitch
        g_inc = gs.sum((1, 2)) * torch.cos(incidence)
        g_wave = per_order.sum((1, 2))
        g_pitch = -(per_order * wave[:, None]).sum() / pitch
        return g_inc, g_wave, g_pitch, None
