import torch
from torch import Tensor


class _IDM(torch.autograd.Function):
    @staticmethod
    def forward(ctx, speed, closing, gap, params, min_gap):
        desired, headway, accel, brake = params.unbind()
        dynamic = speed * headway + speed * closing / (2 * (accel * brake).sqrt())
        target = min_gap + dynamic.clamp(min=0)
        ctx.save_for_backward(speed, closing, gap, params)
        ctx.min_gap = min_gap
        return accel * (1 - (speed / desired) ** 4 - (target / gap) ** 2)

    @staticmethod
    def backward(ctx, grad):
        speed, closing, gap, params = ctx.saved_tensors
        desired, headway, accel, brake = params.unbind()
        root = (accel * brake).sqrt()
        dynamic = speed * headway + speed * closing / (2 * root)
        following = (dynamic >= 0).to(speed.dtype)
        target = ctx.min_gap + dynamic * following
        free = (speed / desired) ** 4
        g_target = -grad * accel * 2 * target / gap**2
        g_dynamic = g_target * following
        g_speed = g_dynamic * (headway + closing / (2 * root)) - grad * accel * 4 * speed**3 / desired**4
        g_closing = g_dynamic * speed / (2 * root)
        g_gap = -g_target * target / gap
        g_root = -(g_dynamic * speed * closing).sum() / (2 * root**2)
        g_params = torch.stack([
            (grad * accel * 4 * free / desired).sum(),
            (g_dynamic * speed).sum(),
            (grad * (1 - free - (target / gap) ** 2)).sum() + g_root * brake / (2 * root),
            g_root * accel / (2 * root),
        ])
        return g_speed, g_closing, g_gap, g_params, None


def idm_acceleration(speed: Tensor, closing: Tensor, gap: Tensor, params: Tensor, min_gap: float = 2.0) -> Tensor:
    """Intelligent driver model.

    speed, closing (own speed minus the leader's), gap: one shape; params: (4,) with desired speed,
    time headway, maximum acceleration, comfortable braking, all positive.
    """
    if params.shape != (4,):
        raise ValueError("params must be (desired speed, headway, acceleration, braking)")
    assert speed.shape == closing.shape == gap.shape
    return _IDM.apply(speed, closing, gap, params, min_gap)
