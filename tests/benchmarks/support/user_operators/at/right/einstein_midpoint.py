import torch


class EinsteinMidpoint(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, weight=None):
        # x: (..., N, D) in the Klein ball, weight: (..., N) or None  ->  (..., D)
        gamma = (1 - x.pow(2).sum(-1)).rsqrt()
        coef = gamma if weight is None else gamma * weight
        out = (coef.unsqueeze(-1) * x).sum(-2) / coef.sum(-1, keepdim=True)
        ctx.save_for_backward(x, weight, out)
        return out

    @staticmethod
    def backward(ctx, grad_output):
        x, weight, out = ctx.saved_tensors
        gamma = (1 - x.pow(2).sum(-1)).rsqrt()
        coef = gamma if weight is None else gamma * weight
        g = (grad_output / coef.sum(-1, keepdim=True)).unsqueeze(-2)
        d_coef = ((x - out.unsqueeze(-2)) * g).sum(-1)
        d_gamma = d_coef if weight is None else d_coef * weight
        d_x = coef.unsqueeze(-1) * g + (d_gamma * gamma ** 3).unsqueeze(-1) * x
        return d_x, None if weight is None else d_coef * gamma


einstein_midpoint = EinsteinMidpoint.apply
