import torch
from torch.autograd import Function


class RSSGap(Function):
    @staticmethod
    def forward(ctx, rear_speed, front_speed, accel_max, brake_min, brake_max, response):
        reached = rear_speed + response * accel_max
        raw = (
            response * rear_speed
            + accel_max * response**2 / 2
            + reached**2 / (2 * brake_min)
            - front_speed**2 / (2 * brake_max)
        )
        ctx.save_for_backward(rear_speed, front_speed, accel_max, brake_min, brake_max, raw > 0)
        ctx.response = response
        return torch.relu(raw)

    @staticmethod
    def backward(ctx, grad_gap):
        rear_speed, front_speed, accel_max, brake_min, brake_max, unsafe = ctx.saved_tensors
        response = ctx.response
        grad = grad_gap.masked_fill_(~unsafe, 0)
        reached = rear_speed + response * accel_max
        return (
            (grad * (response + reached / brake_min)).sum_to_size(rear_speed.shape),
            (-grad * front_speed / brake_max).sum_to_size(front_speed.shape),
            (grad * (response**2 / 2 + response * reached / brake_min)).sum_to_size(accel_max.shape),
            (-grad * reached**2 / (2 * brake_min**2)).sum_to_size(brake_min.shape),
            (grad * front_speed**2 / (2 * brake_max**2)).sum_to_size(brake_max.shape),
            None,
        )
