"""Losses of our training code (ranking, contrastive, segmentation, boxes, distillation)."""

from typing import Optional

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.autograd import Function
from torch.autograd.function import once_differentiable


class RankNetLoss(Function):
    """Mean logistic loss over the pairs (i, j) where item i is more relevant than j."""

    @staticmethod
    def forward(ctx, scores, relevance, sigma=1.0):
        pair = (relevance[:, None] > relevance[None, :]).to(scores.dtype)
        n = pair.sum().clamp(min=1.0)
        diff = scores[:, None] - scores[None, :]
        ctx.save_for_backward(scores, pair, n)
        ctx.sigma = sigma
        return (F.softplus(-sigma * diff) * pair).sum() / n

    @staticmethod
    def backward(ctx, grad_loss):
        scores, pair, n = ctx.saved_tensors
        diff = scores[:, None] - scores[None, :]
        lam = -ctx.sigma * torch.sigmoid(-ctx.sigma * diff) * pair / n
        grad = lam.sum(1) - lam.sum(0)
        return grad, None, None


class ClipContrastive(Function):
    """Symmetric InfoNCE of two batches of embeddings (B, D); logit_scale is a log."""

    @staticmethod
    def forward(ctx, image: Tensor, text: Tensor, logit_scale: Tensor) -> Tensor:
        logits = logit_scale.exp() * image @ text.t()
        pos = logits.diagonal()
        rows = torch.logsumexp(logits, 1) - pos
        cols = torch.logsumexp(logits, 0) - pos
        ctx.save_for_backward(image, text, logit_scale)
        return 0.5 * (rows.mean() + cols.mean())

    @staticmethod
    def backward(ctx, grad: Tensor):
        image, text, logit_scale = ctx.saved_tensors
        scale = logit_scale.exp()
        logits = scale * image @ text.t()
        n = logits.shape[0]
        eye = torch.eye(n, dtype=logits.dtype, device=logits.device)
        probs = 0.5 * (logits.softmax(1) + logits.softmax(0))
        g = grad * (probs - eye) / n
        grad_scale = (g * logits).sum()
        return scale * (g @ text), scale * (g.t() @ image), None


class SoftDiceLoss(Function):
    """1 - Dice, averaged over the batch; target holds 0/1 labels and is not differentiated."""

    @staticmethod
    def forward(ctx, logits, target, smooth=1.0):
        p = torch.sigmoid(logits).flatten(1)
        t = target.flatten(1).to(p.dtype)
        dice = (2.0 * (p * t).sum(1) + smooth) / (p.sum(1) + t.sum(1) + smooth)
        ctx.save_for_backward(p, t)
        ctx.smooth, ctx.shape = smooth, logits.shape
        return (1.0 - dice).mean()

    @staticmethod
    def backward(ctx, g):
        p, t = ctx.saved_tensors
        num = 2.0 * (p * t).sum(1, keepdim=True) + ctx.smooth
        den = p.sum(1, keepdim=True) + t.sum(1, keepdim=True) + 1e-6
        d_p = -(2.0 * t / den - num / den**2) / p.shape[0]
        return (g * d_p * p * (1.0 - p)).view(ctx.shape), None, None


class FocalLoss(Function):
    @staticmethod
    def forward(ctx, logits, target, gamma=2.0, ignore_index=-100):
        valid = target != ignore_index
        safe = target.masked_fill(~valid, 0).unsqueeze(1)
        logp = torch.log_softmax(logits, 1)
        logpt = logp.gather(1, safe).squeeze(1)
        n = valid.sum().clamp(min=1)
        ctx.save_for_backward(logp, safe, valid, n)
        ctx.gamma = gamma
        loss = -((1.0 - logpt.exp()) ** gamma) * logpt
        return (loss * valid).sum() / n

    @staticmethod
    def backward(ctx, grad):
        logp, safe, valid, n = ctx.saved_tensors
        gamma = ctx.gamma
        logpt = logp.gather(1, safe)
        pt = logpt.exp()
        rest = (1.0 - pt).clamp(min=1e-12)
        d = gamma * pt * logpt * rest ** (gamma - 1.0) - rest**gamma
        onehot = torch.zeros_like(logp).scatter(1, safe, 1.0)
        coef = grad * d / n
        return coef * (onehot - logp.exp()), None, None, None


class GIoULoss(Function):
    """Generalised IoU loss of boxes (N, 4) as x1, y1, x2, y2; targets are constants."""

    @staticmethod
    def forward(ctx, pred, target, reduction="none"):
        if reduction not in ("none", "mean"):
            raise ValueError(f"reduction {reduction!r}")
        lo = torch.max(pred[:, :2], target[:, :2])
        hi = torch.min(pred[:, 2:], target[:, 2:])
        inter = (hi - lo).clamp(min=0).prod(1)
        span = torch.max(pred[:, 2:], target[:, 2:])
        span = span - torch.min(pred[:, :2], target[:, :2])
        areas = [(b[:, 2:] - b[:, :2]).prod(1) for b in (pred, target)]
        union = areas[0] + areas[1] - inter
        loss = 2.0 - inter / union - union / span.prod(1)
        ctx.save_for_backward(pred, target)
        ctx.reduction = reduction
        return loss if reduction == "none" else loss.mean()

    @staticmethod
    @once_differentiable
    def backward(ctx, grad):
        pred, target = ctx.saved_tensors
        if ctx.reduction != "none":
            grad = (grad / pred.shape[0]).expand(pred.shape[0])
        (p1, p2), (t1, t2) = pred.split(2, 1), target.split(2, 1)
        overlap = torch.min(p2, t2) - torch.max(p1, t1)
        span = torch.max(p2, t2) - torch.min(p1, t1)
        side, inner = p2 - p1, overlap.clamp(min=0)
        inter, hull = inner.prod(1, keepdim=True), span.prod(1, keepdim=True)
        union = side.prod(1, keepdim=True) - inter
        union = union + (t2 - t1).prod(1, keepdim=True)
        g_union = inter / union**2 - 1.0 / hull
        g_inter = -1.0 / union - g_union
        g_hull = union / hull**2
        d_inter = g_inter * inner.flip(1)
        d_side = g_union * side.flip(1)
        d_span = g_hull * span.flip(1)
        g1 = -d_side - d_inter * (p1 > t1) - d_span * (p1 < t1)
        g2 = d_side + d_inter * (p2 < t2) + d_span * (p2 > t2)
        return grad.unsqueeze(1) * torch.cat([g1, g2], 1), None, None


class DistillKL(Function):
    """Hinton's distillation loss, T^2 KL(teacher || student) averaged over the batch."""

    @staticmethod
    def forward(ctx, student, teacher, temperature: float = 4.0):
        if ctx.needs_input_grad[1]:
            raise ValueError("detach the teacher")
        log_s = F.log_softmax(student / temperature, dim=1)
        log_t = F.log_softmax(teacher / temperature, dim=1)
        kl = (log_t.exp() * (log_t - log_s)).sum() / student.shape[0]
        ctx.save_for_backward(student, teacher)
        ctx.temperature = temperature
        return kl * temperature**2

    @staticmethod
    def backward(ctx, grad_output):
        student, teacher = ctx.saved_tensors
        T = ctx.temperature
        p_s = F.softmax(student / T, dim=1)
        p_t = F.softmax(teacher / T, dim=1)
        grad_student = grad_output * T**2 * (p_s - p_t) / student.shape[0]
        return grad_student, None, None


class UncertaintyWeighting(Function):
    """sum_i exp(-s_i) loss_i + 0.5 s_i (Kendall et al.): one s for each scalar loss."""

    @staticmethod
    def forward(ctx, log_vars: Tensor, *losses: Tensor) -> Tensor:
        if log_vars.shape != (len(losses),) or any(t.dim() for t in losses):
            raise ValueError("want as many scalar losses as log_vars")
        ctx.save_for_backward(log_vars, *losses)
        return (torch.exp(-log_vars) * torch.stack(losses) + 0.5 * log_vars).sum()

    @staticmethod
    def backward(ctx, grad: Tensor) -> tuple[Optional[Tensor], ...]:
        log_vars, *losses = ctx.saved_tensors
        precision = torch.exp(-log_vars)
        grad_log_vars = grad * (0.5 - precision * torch.stack(losses))
        grad_losses = [grad for _ in precision.unbind()]
        return (grad_log_vars, *grad_losses)


def combine_losses(losses: dict, log_vars: Tensor) -> Tensor:
    return UncertaintyWeighting.apply(log_vars, *losses.values())


class _CenterLossFn(Function):
    @staticmethod
    def forward(ctx, feats, labels, centers):
        ctx.save_for_backward(feats, labels, centers)
        return 0.5 * ((feats - centers[labels]) ** 2).sum() / feats.shape[0]

    @staticmethod
    def backward(ctx, grad):
        feats, labels, centers = ctx.saved_tensors
        grad_feats = grad_centers = None
        pull = grad * (feats - centers[labels]) / feats.shape[0]
        if ctx.needs_input_grad[0]:
            grad_feats = pull
        if ctx.needs_input_grad[1]:
            grad_centers = torch.zeros_like(centers).index_add(0, labels, -pull)
        return grad_feats, None, grad_centers


class CenterLoss(nn.Module):
    """Pulls the features of a class towards its learned center (Wen et al. 2016)."""

    def __init__(self, num_classes, feat_dim):
        super().__init__()
        self.centers = nn.Parameter(torch.randn(num_classes, feat_dim))

    def forward(self, feats, labels):
        return _CenterLossFn.apply(feats, labels, self.centers)


class LovaszHinge(Function):
    """Binary Lovasz hinge of a flat tensor of logits; labels are 0 or 1."""

    @staticmethod
    def forward(ctx, logits, labels):
        signs = 2.0 * labels.to(logits.dtype) - 1.0
        errors, perm = (1.0 - logits * signs).sort(descending=True)
        gt = labels[perm].to(logits.dtype)
        inter = gt.sum() - gt.cumsum(0)
        union = gt.sum() + (1.0 - gt).cumsum(0)
        jaccard = 1.0 - inter / union
        steps = torch.cat([jaccard[:1], jaccard[1:] - jaccard[:-1]])
        ctx.save_for_backward(signs, perm, steps * (errors > 0))
        return (errors.clamp(min=0) * steps).sum()

    @staticmethod
    @once_differentiable
    def backward(ctx, g):
        signs, perm, steps = ctx.saved_tensors
        grad_err = torch.empty_like(steps)
        grad_err = steps[perm]
        return -g * signs * grad_err, None


class LabelSmoothCE(Function):
    """Cross entropy with smoothed labels and optional constant class weights."""

    @staticmethod
    def forward(ctx, logits, target, class_weight=None, smoothing=0.1):
        n, c = logits.shape
        logp = logits.sub_(logits.logsumexp(1, keepdim=True))
        soft = torch.full_like(logits, smoothing / c)
        soft.scatter_add_(1, target[:, None], soft.new_full((n, 1), 1.0 - smoothing))
        if class_weight is not None:
            soft = soft * class_weight
        ctx.save_for_backward(logits, soft)
        return -(soft * logp).sum() / n

    @staticmethod
    def backward(ctx, grad):
        logits, soft = ctx.saved_tensors
        probs = torch.softmax(logits, 1)
        g = probs * soft.sum(1, keepdim=True) - soft
        return grad * g / logits.shape[0], None, None, None
