import torch


class PreEmphasis(torch.autograd.Function):
    # y[t] = x[t] - coef * x[t-1] along the last axis

    @staticmethod
    def forward(ctx, x, coef=0.97):
        ctx.coef = coef
        y = x.clone()
        y[..., 1:] -= coef * x[..., :-1]
        return y

    @staticmethod
    def backward(ctx, grad_output):
        grad = grad_output
        grad[..., :-1] -= ctx.coef * grad_output[..., 1:]
        return grad, None
