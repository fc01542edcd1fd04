import torch


def _jaccard_steps(labels_sorted):
    gts = labels_sorted.sum()
    inter = gts - labels_sorted.cumsum(0)
    union = gts + (1 - labels_sorted).cumsum(0)
    jac = 1 - inter / union
    return torch.cat([jac[:1], jac[1:] - jac[:-1]])


class _LovaszHinge(torch.autograd.Function):
    @staticmethod
    def forward(ctx, logits, labels):
        signs = 2 * labels - 1
        err = 1 - logits * signs
        srt, perm = torch.sort(err, descending=True)
        step = _jaccard_steps(labels[perm])
        ctx.save_for_backward(perm, step, signs, err > 0)
        return torch.dot(srt.relu(), step)

    @staticmethod
    def backward(ctx, g):
        perm, step, signs, active = ctx.saved_tensors
        inv = torch.argsort(perm)
        return -g * signs * active * step[perm], None


def lovasz_hinge(logits, labels, ignore=None):
    logits, labels = logits.reshape(-1), labels.reshape(-1)
    if ignore is not None:
        ok = labels != ignore
        logits, labels = logits[ok], labels[ok]
    return _LovaszHinge.apply(logits, labels.to(logits.dtype))
