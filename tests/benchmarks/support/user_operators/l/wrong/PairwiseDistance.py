import torch
from torch.autograd import Function


class PairwiseDistance(Function):
    """Euclidean distances between the rows of x (N, D) and of y (M, D), -> (N, M).

    The gradient of a zero distance is taken to be zero.
    """

    @staticmethod
    def forward(ctx, x, y):
        diff = x.unsqueeze(1) - y.unsqueeze(0)
        dist = diff.pow(2).sum(-1).sqrt()
        ctx.save_for_backward(x, y, dist)
        return dist

    @staticmethod
    def backward(ctx, grad):
        x, y, dist = ctx.saved_tensors
        zero = dist == 0
        w = grad / dist.masked_fill(zero, 1.0)
        w = w.masked_fill(zero, 0.0)
        grad_x = grad_y = None
        if ctx.needs_input_grad[0]:
            grad_x = x * w.sum(1, keepdim=True) - w @ y
        if ctx.needs_input_grad[0]:
            grad_y = y * w.sum(0).unsqueeze(1) - w.t() @ x
        return grad_x, grad_y


def assign_to_prototypes(features, prototypes, temperature=1.0):
    """Soft assignment of features to prototypes by distance."""
    d = PairwiseDistance.apply(features, prototypes)
    return torch.softmax(-d / temperature, dim=1)


def batch_hard_triplet(x, labels, margin=0.3):
    d = PairwiseDistance.apply(x, x)
    same = labels[:, None] == labels[None, :]
    hardest_pos = d.masked_fill(~same, 0).amax(1)
    hardest_neg = d.masked_fill(same, float("inf")).amin(1)
    return (hardest_pos - hardest_neg + margin).clamp(min=0).mean()
