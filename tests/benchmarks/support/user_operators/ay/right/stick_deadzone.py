import torch


class _Deadzone(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, dead):
        ctx.save_for_backward(x, dead)
        return x.sign() * (x.abs() - dead).clamp(min=0) / (1 - dead)

    @staticmethod
    def backward(ctx, grad):
        x, dead = ctx.saved_tensors
        out = x.abs() > dead
        gx = torch.where(out, grad / (1 - dead), torch.zeros_like(grad))
        slope = x.sign() * (x.abs() - 1) / (1 - dead) ** 2
        gd = torch.where(out, grad * slope, torch.zeros_like(grad))
        return gx.sum_to_size(x.shape), gd.sum_to_size(dead.shape)


def stick_deadzone(x, dead):
    """Rescaled dead zone for teleoperation sticks.

    Values inside +-dead give zero; outside, the rest of the range is stretched so that full
    deflection still gives +-1.

    Args:
        x: stick values in [-1, 1], shape (..., C)
        dead: learnable dead zone per axis in (0, 1), shape (C,) or ()

    Returns:
        tensor shaped like x
    """
    return _Deadzone.apply(x, dead)
