import torch
from torch.autograd.function import once_differentiable


def _channel_shape(x):
    return (1, -1) + (1,) * (x.dim() - 2)


class BatchNormFunction(torch.autograd.Function):
    """Batch norm over (N, C, ...). With ``use_batch_stats=False`` the running statistics normalise
    the input and are constants. Running statistics are updated by the caller."""

    @staticmethod
    def forward(ctx, x, weight, bias, running_mean, running_var, use_batch_stats=True, eps=1e-5):
        axes = [0] + list(range(2, x.dim()))
        shape = _channel_shape(x)
        if use_batch_stats:
            mean = x.mean(axes)
            var = x.var(axes, unbiased=False)
        else:
            mean, var = running_mean, running_var
        invstd = torch.rsqrt(var + eps)
        ctx.save_for_backward(x, weight, mean, invstd)
        ctx.use_batch_stats = use_batch_stats
        return (x - mean.view(shape)) * (invstd * weight).view(shape) + bias.view(shape)

    @staticmethod
    @once_differentiable
    def backward(ctx, grad):
        x, weight, mean, invstd = ctx.saved_tensors
        axes = [0] + list(range(2, x.dim()))
        shape = _channel_shape(x)
        count = x.shape[0]
        x_mu = x - mean.view(shape)
        sum_dy = grad.sum(axes)
        sum_dy_xmu = (grad * x_mu).sum(axes)
        grad_weight = sum_dy_xmu * invstd
        grad_x = grad
        if ctx.use_batch_stats:
            proj = (sum_dy_xmu * invstd * invstd / count).view(shape)
            grad_x = grad - (sum_dy / count).view(shape) - x_mu * proj
        grad_x = grad_x * (weight * invstd).view(shape)
        return grad_x, grad_weight, sum_dy, None, None, None, None
