import torch
from torch.autograd.function import once_differentiable


def lovasz_weights(gt_sorted):
    n = gt_sorted.numel()
    gts = gt_sorted.sum()
    inter = gts - gt_sorted.cumsum(0)
    union = gts + (1 - gt_sorted).cumsum(0)
    jac = 1 - inter / union
    if n > 1:
        jac[1:] = jac[1:] - jac[:-1].clone()
    return jac


class LovaszHinge(torch.autograd.Function):
    """Binary Lovasz hinge on flat logits [P] with labels [P] in {0, 1}; labels equal to `ignore` are skipped."""

    @staticmethod
    def forward(ctx, logits, labels, ignore=None):
        valid = torch.ones_like(labels, dtype=torch.bool) if ignore is None else labels != ignore
        where = valid.nonzero()[:, 0]
        ctx.n = logits.shape[0]
        if where.numel() == 0:
            ctx.save_for_backward(where, where, logits.new_zeros(0), logits.new_zeros(0))
            return logits.sum() * 0.0
        y = labels[where].to(logits.dtype)
        signs = 2 * y - 1
        errors = 1 - logits[where] * signs
        errors_sorted, perm = torch.sort(errors, dim=0, descending=True)
        w = lovasz_weights(y[perm])
        ctx.save_for_backward(where, perm, w * (errors_sorted > 0), signs)
        return torch.dot(errors_sorted.clamp(min=0), w)

    @staticmethod
    @once_differentiable
    def backward(ctx, g):
        where, perm, w, signs = ctx.saved_tensors
        g_logits = torch.zeros(ctx.n, dtype=g.dtype, device=g.device)
        if where.numel():
            g_err = torch.zeros_like(w)
            g_err[perm] = w
            g_logits[where] = -g_err * signs
        return g * g_logits, None, None
