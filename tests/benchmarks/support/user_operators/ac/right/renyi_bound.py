import math
import torch


class VRBound(torch.autograd.Function):
    """Variational Renyi bound (Li & Turner 2016) from K importance samples.

    log_w: [K, B].  alpha=0 is IWAE, alpha=1 the ELBO.
    """

    @staticmethod
    def forward(ctx, log_w, alpha):
        ctx.alpha = alpha
        ctx.save_for_backward(log_w)
        if alpha == 1.0:
            return log_w.mean(0)
        s = 1.0 - alpha
        return (torch.logsumexp(s * log_w, dim=0) - math.log(log_w.shape[0])) / s

    @staticmethod
    def backward(ctx, grad):
        log_w, = ctx.saved_tensors
        if ctx.alpha == 1.0:
            return (grad / log_w.shape[0]).expand_as(log_w), None
        weights = torch.softmax((1.0 - ctx.alpha) * log_w, dim=0)
        return grad * weights, None
