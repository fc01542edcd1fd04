"""Loss functions with fused backward passes."""
from typing import List, Optional

import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.autograd.function import Function, once_differentiable


class SigmoidFocal(Function):
    @staticmethod
    def forward(ctx, logits, targets, alpha=0.25, gamma=2.0, reduction="mean"):
        """logits and targets have the same shape, targets are 0 or 1 (constants, no gradient)."""
        sign = 2.0 * targets - 1.0
        log_pt = F.logsigmoid(sign * logits)
        a_t = alpha * targets + (1.0 - alpha) * (1.0 - targets)
        loss = -a_t * (1.0 - log_pt.exp()) ** gamma * log_pt
        ctx.save_for_backward(logits, targets)
        ctx.alpha, ctx.gamma, ctx.reduction = alpha, gamma, reduction
        if reduction == "mean":
            return loss.mean()
        if reduction == "sum":
            return loss.sum()
        return loss

    @staticmethod
    def backward(ctx, grad_output):
        logits, targets = ctx.saved_tensors
        sign = 2.0 * targets - 1.0
        log_pt = F.logsigmoid(sign * logits)
        pt = log_pt.exp()
        a_t = ctx.alpha * targets + (1.0 - ctx.alpha) * (1.0 - targets)
        focal = (1.0 - pt) ** ctx.gamma
        grad = a_t * sign * focal * (ctx.gamma * pt * log_pt - (1.0 - pt))
        if ctx.reduction == "mean":
            grad = grad / logits.numel()
        return grad * grad_output, None, None, None, None


class SmoothedCrossEntropy(Function):
    """Cross entropy on (N, C) logits with label smoothing; the gradient is computed in forward."""

    @staticmethod
    def forward(ctx, logits, target, ignore_index=-100, label_smoothing=0.0):
        if logits.dim() != 2:
            raise ValueError("expected (N, C) logits")
        n, c = logits.shape
        valid = target != ignore_index
        tgt = target.masked_fill(~valid, 0)
        logp = torch.log_softmax(logits, dim=1)
        soft = torch.full_like(logp, label_smoothing / c)
        soft.scatter_(1, tgt[:, None], 1.0 - label_smoothing + label_smoothing / c)
        per_row = -(soft * logp).sum(1) * valid
        count = valid.sum().clamp(min=1)
        grad = (logp.exp() - soft) * valid[:, None]
        grad = grad / count
        ctx.save_for_backward(grad)
        return per_row.sum() / count

    @staticmethod
    @once_differentiable
    def backward(ctx, grad_output):
        grad, = ctx.saved_tensors
        return grad * grad_output, None, None, None


class HuberFn(Function):
    @staticmethod
    def forward(ctx, pred, target, delta=1.0, reduction="mean"):
        assert pred.shape == target.shape, "pred and target must have the same shape"
        ctx.save_for_backward(pred, target)
        ctx.delta = delta
        ctx.reduction = reduction
        diff = pred - target
        ad = diff.abs()
        loss = torch.where(ad <= delta, 0.5 * diff ** 2, delta * (ad - 0.5 * delta))
        if reduction == "none":
            return loss
        return loss.mean() if reduction == "mean" else loss.sum()

    @staticmethod
    def backward(ctx, grad_output):
        pred, target = ctx.saved_tensors
        g = (pred - target).clamp(-ctx.delta, ctx.delta) * grad_output
        if ctx.reduction == "mean":
            g = g / pred.numel()
        grad_pred = g if ctx.needs_input_grad[0] else None
        grad_target = -g if ctx.needs_input_grad[1] else None
        return grad_pred, grad_target, None, None


def huber(pred, target, delta=1.0, reduction="mean"):
    return HuberFn.apply(pred, target, delta, reduction)


class SoftDiceLoss(Function):
    """1 - dice, averaged over the batch.  probs, mask: (B, ...); the 0/1 mask gets no gradient."""

    @staticmethod
    def forward(ctx, probs, mask, smooth=1.0):
        b = probs.size(0)
        p = probs.reshape(b, -1)
        m = mask.reshape(b, -1).to(p.dtype)
        num = 2 * (p * m).sum(1) + smooth
        den = (p * p).sum(1) + m.sum(1) + smooth
        ctx.save_for_backward(probs, mask)
        ctx.smooth = smooth
        return (1 - num / den).mean()

    @staticmethod
    def backward(ctx, grad_output):
        probs, mask = ctx.saved_tensors
        b = probs.size(0)
        p = probs.reshape(b, -1)
        m = mask.reshape(b, -1).to(p.dtype)
        num = (2 * (p * m).sum(1) + ctx.smooth)[:, None]
        den = ((p * p).sum(1) + m.sum(1) + ctx.smooth)[:, None]
        grad = -2 * (m * den - num * p) / den ** 2
        grad = grad * (grad_output / b)
        return grad.view(probs.shape), None, None


class WeightedNLL(Function):
    """NLL of log-probabilities (N, C) with optional class weights (C,), which are constants."""

    @staticmethod
    def forward(ctx, log_probs, target, weight: Optional[torch.Tensor] = None,
                ignore_index: int = -100, reduction: str = "mean"):
        keep = target != ignore_index
        idx = target.clone()
        idx[~keep] = 0
        w = torch.ones_like(log_probs[0]) if weight is None else weight
        w_row = w[idx] * keep
        ctx.save_for_backward(idx, w_row)
        ctx.shape = log_probs.shape
        ctx.reduction = reduction
        loss = -w_row * log_probs.gather(1, idx.unsqueeze(1)).squeeze(1)
        if reduction == "mean":
            return loss.sum() / w_row.sum()
        return loss.sum() if reduction == "sum" else loss

    @staticmethod
    def backward(ctx, grad_output):
        idx, w_row = ctx.saved_tensors
        coef = -w_row
        if ctx.reduction == "mean":
            coef = coef / w_row.sum()
        coef = coef * grad_output
        grad = coef.new_zeros(ctx.shape).scatter(1, idx.unsqueeze(1), coef.unsqueeze(1))
        return grad, None, None, None, None


class TripletSquared(Function):
    @staticmethod
    def forward(ctx, anchor, positive, negative, margin=1.0):
        ctx.save_for_backward(anchor, positive, negative)
        ctx.margin = margin
        d_ap = (anchor - positive).pow(2).sum(1)
        d_an = (anchor - negative).pow(2).sum(1)
        return torch.relu(d_ap - d_an + margin).mean()

    @staticmethod
    def backward(ctx, grad_output):
        a, p, n = ctx.saved_tensors
        gap = (a - p).pow(2).sum(1) - (a - n).pow(2).sum(1)
        active = (gap + ctx.margin > 0).to(a.dtype)
        c = (2.0 * grad_output / a.size(0)) * active.unsqueeze(1)
        return c * (n - p), c * (p - a), c * (a - n), None


class InfoNCE(Function):
    """Row i of q matches row i of k; every other row of k is a negative."""

    @staticmethod
    def forward(q, k, temperature=0.1):
        assert q.shape == k.shape and q.dim() == 2
        logits = q @ k.t() / temperature
        return (torch.logsumexp(logits, dim=1) - logits.diagonal()).mean()

    @staticmethod
    def setup_context(ctx, inputs, output):
        q, k, temperature = inputs
        ctx.save_for_backward(q, k)
        ctx.temperature = temperature

    @staticmethod
    def backward(ctx, grad_loss):
        q, k = ctx.saved_tensors
        n = q.size(0)
        prob = torch.softmax(q @ k.t() / ctx.temperature, dim=1)
        d_logits = (prob - torch.eye(n, dtype=q.dtype, device=q.device)) / n
        d_logits = d_logits * (grad_loss / ctx.temperature)
        return d_logits @ k, d_logits.t() @ q, None


class PoissonNLL(Function):
    @staticmethod
    def forward(ctx, rate, count, log_input=True, eps=1e-8, reduction="mean"):
        if reduction not in ("none", "mean", "sum"):
            raise ValueError(f"unknown reduction: {reduction}")
        ctx.save_for_backward(rate, count)
        ctx.log_input, ctx.eps, ctx.reduction = log_input, eps, reduction
        if log_input:
            loss = torch.exp(rate) - count * rate
        else:
            loss = rate - count * torch.log(rate + eps)
        if reduction == "none":
            return loss
        return loss.mean() if reduction == "mean" else loss.sum()

    @staticmethod
    def backward(ctx, g):
        rate, count = ctx.saved_tensors
        if ctx.reduction == "mean":
            g = g / rate.numel()
        if ctx.log_input:
            g_rate = g * (torch.exp(rate) - count)
            g_count = -g * rate
        else:
            g_rate = g * (1.0 - count / (rate + ctx.eps))
            g_count = -g * torch.log(rate + ctx.eps)
        return g_rate, g_count, None, None, None


class _PinballFn(Function):
    @staticmethod
    def forward(ctx, pred, target, q):
        err = target.unsqueeze(1) - pred
        ctx.save_for_backward(err, q)
        return torch.max(q * err, (q - 1) * err).sum(1).mean()

    @staticmethod
    def backward(ctx, grad_output):
        err, q = ctx.saved_tensors
        slope = torch.where(err >= 0, -q, 1 - q) / err.size(0)
        grad = slope * grad_output
        return grad, -grad.sum(1), None


class PinballLoss(nn.Module):
    """Quantile regression: pred (N, Q), target (N,)."""

    def __init__(self, quantiles: List[float] = (0.1, 0.5, 0.9)):
        super().__init__()
        self.register_buffer("q", torch.tensor(list(quantiles)))

    def forward(self, pred, target):
        if pred.size(-1) != self.q.numel():
            raise ValueError("one column of pred per quantile is needed")
        return _PinballFn.apply(pred, target, self.q.to(pred.dtype))


class DistillKL(Function):
    """T^2 * KL(teacher || student), averaged over the tokens where mask is True.

    student, teacher: (B, L, V) logits; mask: (B, L) bool.
    """

    @staticmethod
    def forward(ctx, student, teacher, mask, T=2.0):
        log_ps = torch.log_softmax(student / T, dim=-1)
        log_pt = torch.log_softmax(teacher / T, dim=-1)
        pt = log_pt.exp()
        kl = (pt * (log_pt - log_ps)).sum(-1)
        n = mask.sum()
        m = mask.to(kl.dtype) / n
        d_student = T * (log_ps.exp() - pt) * m.unsqueeze(-1)
        d_teacher = T * pt * (log_pt - log_ps - kl.unsqueeze(-1)) * m.unsqueeze(-1)
        ctx.save_for_backward(d_student, d_teacher)
        return T * T * (kl * m).sum()

    @staticmethod
    def backward(ctx, grad_output):
        d_student, d_teacher = ctx.saved_tensors
        return d_student * grad_output, d_teacher * grad_output, None, None
