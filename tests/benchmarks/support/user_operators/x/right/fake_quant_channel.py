import torch


class FakeQuantPerChannel(torch.autograd.Function):
    """Per-channel fake quantisation of x (C, ...).

    Straight-through estimator: the gradient passes where the rounded value lies in
    [qmin, qmax] and is zero where it is clipped. scale and zero_point come from
    calibration and are not trained.
    """

    @staticmethod
    def forward(ctx, x, scale, zero_point, qmin, qmax):
        shape = (-1,) + (1,) * (x.dim() - 1)
        s, z = scale.reshape(shape), zero_point.reshape(shape)
        q = torch.round(x / s) + z
        ctx.save_for_backward((q >= qmin) & (q <= qmax))
        return (q.clamp(qmin, qmax) - z) * s

    @staticmethod
    def backward(ctx, grad):
        (inside,) = ctx.saved_tensors
        return grad * inside, None, None, None, None
