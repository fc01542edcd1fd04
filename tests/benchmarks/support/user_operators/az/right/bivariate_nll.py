import math

import torch


class _BivariateNLL(torch.autograd.Function):
    @staticmethod
    def forward(ctx, params, target):
        mean, log_std, raw = params[..., :2], params[..., 2:4], params[..., 4]
        ctx.save_for_backward(params, target)
        zx, zy = ((target - mean) * torch.exp(-log_std)).unbind(-1)
        rho = torch.tanh(raw)
        free = 1 - rho**2
        quad = (zx**2 - 2 * rho * zx * zy + zy**2) / (2 * free)
        return quad + log_std.sum(-1) + free.log() / 2 + math.log(2 * math.pi)

    @staticmethod
    def backward(ctx, grad):
        params, target = ctx.saved_tensors
        mean, log_std, raw = params[..., :2], params[..., 2:4], params[..., 4]
        precision = torch.exp(-log_std)
        z = (target - mean) * precision
        zx, zy = z.unbind(-1)
        rho = torch.tanh(raw)
        free = 1 - rho**2
        gz = (z - rho[..., None] * z.flip(-1)) / free[..., None]
        quad = zx**2 - 2 * rho * zx * zy + zy**2
        g_rho = (rho * quad / free - zx * zy) / free - rho / free
        g_mean = -gz * precision
        g_params = torch.cat([g_mean, 1 - gz * z, (g_rho * free)[..., None]], -1)
        grad = grad[..., None]
        return grad * g_params, -grad * g_mean


def bivariate_nll(params, target):
    assert params.shape[:-1] == target.shape[:-1] and params.size(-1) == 5
    return _BivariateNLL.apply(params, target)
