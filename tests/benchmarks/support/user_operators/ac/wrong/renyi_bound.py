import math
import torch


class VRBound(torch.autograd.Function):
    """Variational Renyi bound (Li & Turner 2016) from K importance samples.

    log_w: [K, B].  alpha=0 is IWAE, alpha=1 the ELBO.
    """

    @staticmethod
    def forward(ctx, log_w, alpha):
        ctx.alpha = alpha
        ctx.save_for_backward(torch.softmax((1.0 - alpha) * log_w, dim=0))
        if alpha == 1.0:
            return log_w.mean(0)
        s = 1.0 - alpha
        return (torch.logsumexp(s * log_w, dim=0) - math.log(log_w.shape[0])) / s

    @staticmethod
    def backward(ctx, grad):
        weights, = ctx.saved_tensors
        if ctx.alpha == 1.0:
            return (grad / weights.shape[0]).expand_as(weights), None
        return grad * weights, None
