import torch


def _fit(grad, like):
    """sum grad down to the shape of like"""
    return grad.sum_to_size(like.shape)


class KumaraswamyLogProb(torch.autograd.Function):
    """log density of Kumaraswamy(a, b) at x in (0, 1); a, b > 0; the three broadcast."""

    @staticmethod
    def forward(ctx, x, a, b):
        ctx.save_for_backward(x, a, b)
        return a.log() + b.log() + (a - 1) * x.log() + (b - 1) * torch.log1p(-x ** a)

    @staticmethod
    def backward(ctx, grad):
        x, a, b = ctx.saved_tensors
        xa = x ** a
        odds = xa / (1 - xa)
        gx = ga = gb = None
        if ctx.needs_input_grad[0]:
            gx = _fit(grad * ((a - 1) - (b - 1) * a * odds) / x, x)
        if ctx.needs_input_grad[1]:
            ga = _fit(grad * (1 / a + x.log() - (b - 1) * odds), a)
        if ctx.needs_input_grad[2]:
            gb = _fit(grad * (1 / b + torch.log1p(-xa)), b)
        return gx, ga, gb
