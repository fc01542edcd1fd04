import torch
from torch.autograd import Function


class DownsampleRecalibrate(Function):
    @staticmethod
    def forward(ctx, prob, keep_rate):
        if (keep_rate <= 0).any() or (keep_rate > 1).any():
            raise ValueError("keep_rate must lie in (0, 1]")
        ctx.save_for_backward(prob, keep_rate)
        return prob * keep_rate / (prob * keep_rate + 1 - prob)

    @staticmethod
    def backward(ctx, grad_out):
        prob, keep_rate = ctx.saved_tensors
        denom = prob * keep_rate + 1 - prob
        grad_prob = grad_rate = None
        if ctx.needs_input_grad[0]:
            out = prob * keep_rate / denom
            grad_prob = (grad_out * out * (1 - out) / (prob * (1 - prob))).sum_to_size(prob.shape)
        if ctx.needs_input_grad[1]:
            grad_rate = (grad_out * prob * (1 - prob) / denom**2).sum_to_size(keep_rate.shape)
        return grad_prob, grad_rate
