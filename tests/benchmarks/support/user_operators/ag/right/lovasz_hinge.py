import torch


def _lovasz_weights(gt_sorted):
    """Gradient of the Lovasz extension w.r.t. sorted errors (Alg. 1 of the paper)."""
    total = gt_sorted.sum()
    inter = total - gt_sorted.cumsum(0)
    union = total + (1.0 - gt_sorted).cumsum(0)
    jac = 1.0 - inter / union
    return torch.cat([jac[:1], jac[1:] - jac[:-1]])


class LovaszHinge(torch.autograd.Function):
    """Binary Lovasz hinge on flat logits.

    logits: [P] float, labels: [P] 0/1, void: label value to leave out or None
    """

    @staticmethod
    def forward(ctx, logits, labels, void=None):
        keep = torch.ones_like(labels, dtype=torch.bool) if void is None else labels != void
        z = logits[keep]
        y = labels[keep].to(logits.dtype)
        signs = 2.0 * y - 1.0
        errors = 1.0 - z * signs
        errors_sorted, perm = torch.sort(errors, descending=True)
        w = _lovasz_weights(y[perm])
        slope = -w * signs[perm] * (errors_sorted > 0).to(w.dtype)
        ctx.save_for_backward(keep, perm, slope)
        return torch.dot(errors_sorted.clamp(min=0), w)

    @staticmethod
    def backward(ctx, grad_loss):
        keep, perm, slope = ctx.saved_tensors
        flat = torch.zeros_like(slope)
        flat[perm] = slope
        full = flat.new_zeros(keep.shape)
        full[keep] = flat
        return grad_loss * full, None, None
