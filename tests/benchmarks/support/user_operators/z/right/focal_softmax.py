import torch
import torch.nn.functional as F


class FocalSoftmax(torch.autograd.Function):
    """Multi-class focal loss, mean over the targets that count.

    logits (N, C), target (N,) long, class_weight (C,) or None
    """

    @staticmethod
    def forward(ctx, logits, target, gamma=2.0, ignore_index=-100, class_weight=None):
        keep = target != ignore_index
        t = target.where(keep, torch.zeros_like(target)).unsqueeze(1)
        logp = F.log_softmax(logits, dim=1)
        lp = logp.gather(1, t).squeeze(1)
        alpha = keep.to(logits.dtype)
        if class_weight is not None:
            alpha = alpha * class_weight[t.squeeze(1)]
        n = keep.sum().clamp_min(1)
        ctx.save_for_backward(logp, t, alpha, n)
        ctx.gamma = gamma
        return -(alpha * (1 - lp.exp()) ** gamma * lp).sum() / n

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx, g):
        logp, t, alpha, n = ctx.saved_tensors
        lp = logp.gather(1, t)
        pt = lp.exp()
        q = 1 - pt
        slope = ctx.gamma * q ** (ctx.gamma - 1) * pt * lp - q**ctx.gamma
        onehot = torch.zeros_like(logp).scatter_(1, t, 1.0)
        gl = slope * (onehot - logp.exp())
        return g / n * alpha.unsqueeze(1) * gl, None, None, None, None
