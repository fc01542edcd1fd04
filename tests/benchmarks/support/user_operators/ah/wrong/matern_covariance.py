import math

import torch
from torch.autograd.function import once_differentiable


class MaternCovariance(torch.autograd.Function):
    """Matern kernel with one shared lengthscale and a gradient for the lengthscale only.

    Shapes: x1 ``(n, d)``, x2 ``(m, d)``, lengthscale ``(1, 1)``; ``nu`` is 0.5, 1.5 or 2.5.
    """

    @staticmethod
    def forward(ctx, x1, x2, lengthscale, nu, dist_func):
        if any(ctx.needs_input_grad[:2]):
            raise RuntimeError("MaternCovariance cannot compute gradients with respect to x1 and x2")
        if lengthscale.numel() > 1:
            raise ValueError("MaternCovariance cannot handle multiple lengthscales")
        if nu not in (0.5, 1.5, 2.5):
            raise ValueError("nu must be 0.5, 1.5 or 2.5")
        mean = x1.mean(0, keepdim=True)
        x1_ = (x1 - mean) / lengthscale
        x2_ = (x2 - mean) / lengthscale
        scaled_unitless_dist = dist_func(x1_, x2_).mul(math.sqrt(nu * 2))
        exp_component = torch.exp(-scaled_unitless_dist)
        if nu == 0.5:
            covar_mat = exp_component
            d_output_d_input = scaled_unitless_dist / lengthscale * exp_component
        elif nu == 1.5:
            covar_mat = (1 + scaled_unitless_dist) * exp_component
            d_output_d_input = scaled_unitless_dist.pow(2) / lengthscale * exp_component
        else:
            covar_mat = (1 + scaled_unitless_dist + scaled_unitless_dist**2 / 3) * exp_component
            d_output_d_input = scaled_unitless_dist.pow(2) / 3 / lengthscale * exp_component
        ctx.save_for_backward(d_output_d_input)
        return covar_mat

    @staticmethod
    @once_differentiable
    def backward(ctx, grad_output):
        (d_output_d_input,) = ctx.saved_tensors
        lengthscale_grad = (grad_output * d_output_d_input).sum().view(1, 1)
        return None, None, lengthscale_grad, None, None
