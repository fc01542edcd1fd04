import torch


class _MinJerk(torch.autograd.Function):
    @staticmethod
    def forward(ctx, start, goal, duration, t):
        ctx.save_for_backward(start, goal, duration, t)
        tau = (t / duration[:, None]).clamp(0, 1)
        s = tau**3 * (10 - 15 * tau + 6 * tau**2)
        return start[:, None] + (goal - start)[:, None] * s[..., None]

    @staticmethod
    def backward(ctx, grad):
        start, goal, duration, t = ctx.saved_tensors
        tau = (t / duration[:, None]).clamp(0, 1)
        s = tau**3 * (10 - 15 * tau + 6 * tau**2)
        ds = 30 * tau**2 * (1 - tau) ** 2
        g_goal = (grad * s[..., None]).sum(1)
        g_start = grad.sum(1) - g_goal
        g_tau = (grad * (goal - start)[:, None]).sum(-1) * ds
        g_t = (g_tau / duration[:, None]).sum(0)
        g_dur = -(g_tau * t).sum(1) / duration**2
        return g_start, g_goal, g_dur, g_t


def min_jerk(start, goal, duration, t):
    """Minimum-jerk point-to-point motion; rests at the goal when its duration is over.

    start, goal (B, D), duration (B,) [s], t (N,) [s] -> (B, N, D)
    """
    return _MinJerk.apply(start, goal, duration, t)
