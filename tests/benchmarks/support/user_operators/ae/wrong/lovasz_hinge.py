import torch
from torch import nn
from torch.autograd.function import once_differentiable


def jaccard_steps(sorted_labels):
    """increments of the Jaccard loss when errors are added one by one"""
    total = sorted_labels.sum(-1, keepdim=True)
    inter = total - sorted_labels.cumsum(-1)
    union = total + (1 - sorted_labels).cumsum(-1)
    jac = 1 - inter / union
    return torch.cat([jac[..., :1], jac[..., 1:] - jac[..., :-1]], dim=-1)


class _LovaszHinge(torch.autograd.Function):
    @staticmethod
    def forward(ctx, logits, labels):
        signs = 2 * labels - 1
        errors = 1 - logits * signs
        errors_sorted, perm = errors.sort(dim=-1, descending=True)
        steps = jaccard_steps(labels.gather(-1, perm))
        ctx.save_for_backward(signs, errors_sorted, perm, steps)
        return (errors_sorted.clamp(min=0) * steps).sum(-1)

    @staticmethod
    @once_differentiable
    def backward(ctx, g):
        signs, errors_sorted, perm, steps = ctx.saved_tensors
        d_sorted = steps * (errors_sorted > 0) * g.unsqueeze(-1)
        d_errors = d_sorted.gather(-1, perm)
        return -d_errors * signs, None


class LovaszHingeLoss(nn.Module):
    def __init__(self, per_image=True):
        super().__init__()
        self.per_image = per_image

    def forward(self, logits, labels):
        labels = labels.to(logits.dtype)
        if self.per_image:
            logits, labels = logits.flatten(1), labels.flatten(1)
        else:
            logits, labels = logits.reshape(1, -1), labels.reshape(1, -1)
        return _LovaszHinge.apply(logits, labels).mean()
