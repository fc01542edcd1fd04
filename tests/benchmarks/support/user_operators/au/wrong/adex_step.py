import torch


class _AdEx(torch.autograd.Function):
    @staticmethod
    def forward(ctx, v, w, current, dt, delta, v_t, v_peak, v_r, tau_w, a, b):
        ctx.save_for_backward(v, w, current)
        ctx.p = dt, delta, v_t, v_peak, tau_w, a
        v1 = v + dt * (-v + delta * torch.exp((v - v_t) / delta) - w + current)
        w1 = w + dt / tau_w * (a * v - w)
        spike = v1 >= v_peak
        ctx.mark_non_differentiable(spike)
        return torch.where(spike, torch.full_like(v1, v_r), v1), w1 + b * spike, spike

    @staticmethod
    def backward(ctx, gv, gw, _):
        v, w, current = ctx.saved_tensors
        dt, delta, v_t, v_peak, tau_w, a = ctx.p
        ex = torch.exp((v - v_t) / delta)
        v1 = v + dt * (-v + delta * ex - w + current)
        live = v1 < v_peak
        gv, gw = gv * live, gw * live
        g_v = gv * (1 + dt * (ex - 1)) + gw * dt * a / tau_w
        g_w = gw * (1 - dt / tau_w) - gv * dt
        return (g_v, g_w, gv * dt) + (None,) * 8


def adex_step(v, w, current, dt=0.1, delta=0.2, v_t=1.0, v_peak=1.6, v_r=-0.3, tau_w=8.0, a=0.4, b=0.5):
    """One Euler step of adaptive exponential integrate-and-fire neurons (dimensionless, rest at 0).

    v, w, current (N,) -> v', w', spike (bool). A neuron over v_peak is put back to v_r; the reset
    value doesn't depend on anything.
    """
    return _AdEx.apply(v, w, current, dt, delta, v_t, v_peak, v_r, tau_w, a, b)
