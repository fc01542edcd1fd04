import torch
import torch.nn.functional as F


class _NE(torch.autograd.Function):
    @staticmethod
    def forward(ctx, logits, labels, weights):
        total = weights.sum()
        loss = (weights * (F.softplus(logits) - labels * logits)).sum() / total
        rate = (weights * labels).sum() / total
        background = -(rate * rate.log() + (1 - rate) * torch.log1p(-rate))
        ctx.save_for_backward(logits, labels, weights)
        return loss / background

    @staticmethod
    def backward(ctx, grad_ne):
        logits, labels, weights = ctx.saved_tensors
        total = weights.sum()
        bce = F.softplus(logits) - labels * logits
        loss = (weights * bce).sum() / total
        rate = (weights * labels).sum() / total
        background = -(rate * rate.log() + (1 - rate) * torch.log1p(-rate))
        grad_loss = grad_ne / background
        grad_background = -grad_ne * loss / background**2
        grad_logits = grad_loss * weights * (torch.sigmoid(logits) - labels) / total
        grad_weights = grad_loss * (bce - loss) / total
        grad_weights = grad_weights + grad_background * torch.log((1 - rate) / rate) * (labels - rate) / total
        return grad_logits, None, grad_weights


def normalized_entropy(logits: torch.Tensor, labels: torch.Tensor, weights: torch.Tensor) -> torch.Tensor:
    """Weighted log loss over the entropy of the weighted base rate.

    logits, labels, weights: (N,). Differentiable in logits and weights.
    """
    labels = labels.to(logits.dtype)
    if not 0 < float((weights * labels).detach().sum()) < float(weights.detach().sum()):
        raise ValueError("normalized entropy needs both classes in the batch")
    return _NE.apply(logits, labels, weights)
