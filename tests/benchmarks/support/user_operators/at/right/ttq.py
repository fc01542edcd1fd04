import torch
from torch.autograd import Function


class TTQ(Function):
    """Trained ternary quantization. The gradient for the latent weights is the estimator of the
    paper (scaled by W_p, 1, W_n in the three zones), not a true derivative; that of W_p, W_n is."""

    @staticmethod
    def forward(ctx, weight, w_p, w_n, t=0.05):
        delta = t * weight.abs().max()
        ctx.save_for_backward(weight, w_p, w_n)
        ctx.t = t
        a = (weight > delta).to(weight.dtype)
        b = (weight < -delta).to(weight.dtype)
        return w_p * a - w_n * b

    @staticmethod
    def backward(ctx, grad_output):
        weight, w_p, w_n = ctx.saved_tensors
        delta = ctx.t * weight.abs().max()
        a = (weight > delta).to(weight.dtype)
        b = (weight < -delta).to(weight.dtype)
        c = 1 - a - b
        grad_fp = w_p * a * grad_output + w_n * b * grad_output + c * grad_output
        return grad_fp, (a * grad_output).sum(), -(b * grad_output).sum(), None
