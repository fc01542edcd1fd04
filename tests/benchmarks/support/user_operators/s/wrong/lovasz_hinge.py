import torch


class LovaszHinge(torch.autograd.Function):
    @staticmethod
    def forward(ctx, logits, labels):
        labels = labels.to(logits.dtype)
        signs = 2 * labels - 1
        errs, perm = (1 - logits * signs).sort(descending=True)
        gt = labels[perm]
        inter = gt.sum() - gt.cumsum(0)
        union = gt.sum() + (1 - gt).cumsum(0)
        jac = 1 - inter / union
        jac[1:] = jac[1:] - jac[:-1]
        ctx.save_for_backward(signs, perm, jac * (errs > 0))
        return (errs.relu() * jac).sum()

    @staticmethod
    def backward(ctx, g):
        signs, perm, w = ctx.saved_tensors
        d = w[perm]
        return -g * d * signs, None
