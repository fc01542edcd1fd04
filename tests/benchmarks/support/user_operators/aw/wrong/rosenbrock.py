import torch
from torch.autograd import Function


class Rosenbrock(Function):
    """The banana function, with a backward written out by hand for the course.

    f(x) = sum_i  b * (x[i+1] - x[i]^2)^2 + (a - x[i])^2

    x: (..., n) with n >= 2.  Returns (...).
    Works for Newton's method, too: backward is made of differentiable operations.
    """

    @staticmethod
    def forward(ctx, x, a=1.0, b=100.0):
        valley = x[..., 1:] - x[..., :-1] ** 2
        ctx.save_for_backward(x, valley)
        ctx.a, ctx.b = a, b
        return (b * valley ** 2 + (a - x[..., :-1]) ** 2).sum(-1)

    @staticmethod
    def backward(ctx, grad_output):
        x, valley = ctx.saved_tensors
        a, b = ctx.a, ctx.b
        g = grad_output.unsqueeze(-1)
        head = -4 * b * valley * x[..., :-1] - 2 * (a - x[..., :-1])
        tail = 2 * b * valley
        none = torch.zeros_like(x[..., :1])
        grad_x = g * (torch.cat([head, none], -1) + torch.cat([none, tail], -1))
        return grad_x, None, None
