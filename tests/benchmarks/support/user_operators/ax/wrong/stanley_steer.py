import torch
from torch import Tensor


@torch.library.custom_op("ackermann::stanley_steer", mutates_args=())
def _stanley(heading: Tensor, crosstrack: Tensor, speed: Tensor, gain: float, soft: float, limit: float) -> Tensor:
    raw = heading + torch.atan2(gain * crosstrack, speed + soft)
    return raw.clamp(-limit, limit)


@_stanley.register_fake
def _(heading, crosstrack, speed, gain, soft, limit):
    return torch.empty_like(heading)


def _save(ctx, inputs, output):
    heading, crosstrack, speed, ctx.gain, ctx.soft, ctx.limit = inputs
    ctx.save_for_backward(heading, crosstrack, speed)


def _vjp(ctx, grad):
    heading, crosstrack, speed = ctx.saved_tensors
    y, x = ctx.gain * crosstrack, speed + ctx.soft
    raw = heading + torch.atan2(y, x)
    g = torch.where(raw < ctx.limit, grad, torch.zeros_like(grad))
    r2 = x**2 + y**2
    return g, g * ctx.gain * x / r2, -g * y / r2, None, None, None


_stanley.register_autograd(_vjp, setup_context=_save)


def stanley_steer(heading, crosstrack, speed, gain=2.5, soft=1.0, limit=0.6):
    """Stanley path tracking: steering angle within +-limit.

    heading (rad), crosstrack (m) and speed (m/s, not negative) are tensors of one shape; soft > 0.
    """
    return torch.ops.ackermann.stanley_steer(heading, crosstrack, speed, gain, soft, limit)
