import torch
from torch.autograd import Function


class _SmoothCE(Function):
    @staticmethod
    def forward(ctx, logits, target, class_weight, smoothing, ignore_index, reduction):
        logp = torch.log_softmax(logits, dim=1)
        valid = target != ignore_index
        safe = torch.where(valid, target, torch.zeros_like(target))
        C = logits.size(1)
        soft = torch.full_like(logits, smoothing / C)
        soft = soft.scatter_add(1, safe[:, None], torch.full_like(soft[:, :1], 1 - smoothing))
        if class_weight is not None:
            soft = soft * class_weight
        soft = soft * valid[:, None].to(soft.dtype)
        loss = -(soft * logp).sum(1)
        if reduction == "none":
            norm = None
        elif reduction == "mean":
            norm = valid.sum().clamp(min=1).to(logits.dtype)
        else:
            norm = torch.ones((), dtype=logits.dtype, device=logits.device)
        ctx.save_for_backward(logits, soft, norm)
        return loss if norm is None else loss.sum() / norm

    @staticmethod
    def backward(ctx, grad):
        logits, soft, norm = ctx.saved_tensors
        p = torch.softmax(logits, dim=1)
        mass = soft.sum(1, keepdim=True)
        d = p * (mass > 0).to(p.dtype) - soft
        if norm is None:
            d = d * grad[:, None]
        else:
            d = d * (grad / norm)
        return d, None, None, None, None, None


def smooth_cross_entropy(logits, target, class_weight=None, smoothing=0.1, ignore_index=-100, reduction="mean"):
    """
    Label-smoothed cross entropy; 'mean' divides by the number of targets that aren't ignored.
    logits (N, C), target (N,) long, class_weight (C,) constant.
    """
    if class_weight is not None and class_weight.requires_grad:
        raise ValueError("class_weight is a constant")
    return _SmoothCE.apply(logits, target, class_weight, smoothing, ignore_index, reduction)
