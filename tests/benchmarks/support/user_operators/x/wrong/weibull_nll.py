import torch
from torch.autograd import Function


class WeibullNLL(Function):
    """Right-censored Weibull survival loss.

    time > 0, event in {0, 1} (1 = died, 0 = censored), log_scale and log_shape broadcast
    against time. Mean over the subjects.
    """

    @staticmethod
    def forward(ctx, time, event, log_scale, log_shape):
        ctx.save_for_backward(time, event, log_scale, log_shape)
        k = log_shape.exp()
        z = time.log() - log_scale
        ll = event * (log_shape + k * z - time.log()) - torch.exp(k * z)
        return -ll.mean()

    @staticmethod
    def backward(ctx, g):
        time, event, log_scale, log_shape = ctx.saved_tensors
        k = log_shape.exp()
        z = time.log() - log_scale
        H = torch.exp(k * z)
        g = -g / torch.broadcast_tensors(time, log_scale, log_shape)[0].numel()
        dz = g * k * (event - H)
        dshape = g * event * (1 + k * z - H * k * z)
        dtime = dz / time - g * event / time
        return (
            dtime.sum_to_size(time.shape),
            None,
            -dz.sum_to_size(log_scale.shape),
            dshape.sum_to_size(log_shape.shape),
        )
