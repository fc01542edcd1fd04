import torch

_A, _B = 0.7978845608028654, 0.044715


class _BiasGELU(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, bias):
        ctx.save_for_backward(x, bias)
        z = x + bias
        return 0.5 * z * (1 + torch.tanh(_A * (z + _B * z**3)))

    @staticmethod
    def backward(ctx, g):
        x, bias = ctx.saved_tensors
        z = x + bias
        t = torch.tanh(_A * (z + _B * z**3))
        slope = 0.5 * (1 + t) + 0.5 * z * (1 - t * t) * _A * (1 + 3 * _B * z * z)
        gz = g.mul_(slope)
        return gz, gz.sum_to_size(bias.shape)


def bias_gelu(x, bias, residual=None):
    """GELU (tanh form) of x + bias, plus the residual if there is one."""
    y = _BiasGELU.apply(x, bias)
    return y if residual is None else y + residual
