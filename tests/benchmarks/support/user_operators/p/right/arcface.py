import math

import torch
from torch.autograd.function import once_differentiable


class ArcFaceLoss(torch.autograd.Function):
    """Additive angular margin softmax.

    cosine: (N, classes), strictly inside (-1, 1); labels: (N,) int64.  Mean over the batch.
    """

    @staticmethod
    def forward(ctx, cosine, labels, s=30.0, m=0.5):
        col = labels.unsqueeze(1)
        target = cosine.gather(1, col)
        sine = torch.sqrt(1.0 - target ** 2)
        easy = target > math.cos(math.pi - m)
        phi = torch.where(easy, target * math.cos(m) - sine * math.sin(m), target - math.sin(math.pi - m) * m)
        dphi = torch.where(easy, math.cos(m) + target / sine * math.sin(m), torch.ones_like(target))
        logp = torch.log_softmax(s * cosine.scatter(1, col, phi), dim=1)
        ctx.save_for_backward(col, dphi)
        ctx.probs = logp.exp()
        ctx.s = s
        return -logp.gather(1, col).mean()

    @staticmethod
    @once_differentiable
    def backward(ctx, grad_output):
        col, dphi = ctx.saved_tensors
        probs = ctx.probs
        grad = probs.scatter_add(1, col, -torch.ones_like(dphi))
        grad = grad * (grad_output * ctx.s / probs.size(0))
        grad = grad.scatter(1, col, grad.gather(1, col) * dphi)
        return grad, None, None, None
