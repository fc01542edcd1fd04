import torch
from torch.autograd import Function


class CumulativeTrapezoid(Function):
    """scipy.integrate.cumulative_trapezoid for y (..., T), x (T,) or (..., T)"""

    @staticmethod
    def forward(y, x):
        dx = x[..., 1:] - x[..., :-1]
        return (0.5 * dx * (y[..., 1:] + y[..., :-1])).cumsum(-1)

    @staticmethod
    def setup_context(ctx, inputs, output):
        ctx.save_for_backward(*inputs)

    @staticmethod
    def backward(ctx, grad):
        y, x = ctx.saved_tensors
        dx = x[..., 1:] - x[..., :-1]
        tail = grad.flip(-1).cumsum(-1).flip(-1)
        gy = gx = None
        if ctx.needs_input_grad[0]:
            half = 0.5 * tail * dx
            zero = torch.zeros_like(half[..., :1])
            gy = torch.cat((half, zero), -1) + torch.cat((zero, half), -1)
        if ctx.needs_input_grad[1]:
            area = 0.5 * tail * (y[..., 1:] + y[..., :-1])
            zero = torch.zeros_like(area[..., :1])
            gx = torch.cat((zero, area), -1) - torch.cat((area, zero), -1)
            if x.dim() == 1:
                gx = gx.reshape(-1, x.numel()).sum(0)
        return gy, gx
