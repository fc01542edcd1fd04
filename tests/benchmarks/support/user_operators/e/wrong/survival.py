"""Losses for survival analysis, counts and robust regression."""

import math
from typing import Optional

import torch
from torch import Tensor
from torch.autograd import Function


class CoxPartialLikelihood(Function):
    """Negative log partial likelihood (Breslow ties), mean over the observed events.

    risk (N,), time (N,), event (N,) bool.
    """

    @staticmethod
    def forward(ctx, risk, time, event):
        if not (risk.shape == time.shape == event.shape):
            raise ValueError("risk, time and event must have the same shape")
        at_risk = time.unsqueeze(0) >= time.unsqueeze(1)
        logits = risk.unsqueeze(0).expand_as(at_risk).masked_fill(~at_risk, -math.inf)
        term = torch.logsumexp(logits, dim=1) - risk
        ctx.save_for_backward(risk, time, event)
        return (term * event).sum() / event.sum().clamp(min=1)

    @staticmethod
    def backward(ctx, grad_loss):
        risk, time, event = ctx.saved_tensors
        at_risk = time.unsqueeze(0) > time.unsqueeze(1)
        weight = torch.exp(risk - risk.max()).unsqueeze(0) * at_risk
        share = weight / weight.sum(dim=1, keepdim=True).clamp_min(1e-30)
        ev = event.to(risk.dtype)
        g = (ev.unsqueeze(1) * share).sum(0) - ev
        return grad_loss * g / event.sum().clamp(min=1), None, None


class PinballMulti(Function):
    """Quantile loss of pred (N, Q) against target (N,) at levels quantiles (Q,)."""

    @staticmethod
    def forward(ctx, pred, target, quantiles, reduction="mean"):
        assert pred.shape == (target.shape[0], quantiles.shape[0])
        d = target.unsqueeze(1) - pred
        ctx.save_for_backward(pred, target, quantiles)
        ctx.norm = pred.numel() if reduction == "mean" else 1
        return torch.maximum(quantiles * d, (quantiles - 1) * d).sum() / ctx.norm

    @staticmethod
    def backward(ctx, g):
        pred, target, quantiles = ctx.saved_tensors
        d = target.unsqueeze(1) - pred
        g_d = torch.where(d > 0, quantiles, quantiles - 1) * (g / ctx.norm)
        g_target = g_d.mean(dim=1)
        return -g_d, g_target, (d * g / ctx.norm).sum(dim=0), None


class OrdinalCumulative(Function):
    """Cumulative-logit loss: score (N,), increasing cuts (K-1,), label (N,) in 0..K-1."""

    @staticmethod
    def forward(ctx, score: Tensor, cuts: Tensor, label: Tensor) -> Tensor:
        assert bool((cuts[1:] > cuts[:-1]).all()), "cuts must be increasing"
        edges = torch.nn.functional.pad(cuts, (0, 1), value=math.inf)
        edges = torch.nn.functional.pad(edges, (1, 0), value=-math.inf)
        p = torch.sigmoid(edges[label + 1] - score) - torch.sigmoid(
            edges[label] - score
        )
        ctx.save_for_backward(score, cuts, label)
        return -p.log().mean()

    @staticmethod
    def backward(ctx, grad: Tensor):
        score, cuts, label = ctx.saved_tensors
        edges = torch.nn.functional.pad(cuts, (0, 1), value=math.inf)
        edges = torch.nn.functional.pad(edges, (1, 0), value=-math.inf)
        hi = torch.sigmoid(edges[label + 1] - score)
        lo = torch.sigmoid(edges[label] - score)
        scale = grad / score.numel() / (hi - lo)
        g_hi = -scale * hi * (1 - hi)
        g_lo = scale * lo * (1 - lo)
        g_edges = (
            torch.zeros_like(edges)
            .index_add(0, label + 1, g_hi)
            .index_add(0, label, g_lo)
        )
        return -(g_hi + g_lo), g_edges[:-2], None


class FocalIgnore(Function):
    """Focal loss over logits (N, C), mean over the rows whose label is not ignored."""

    @staticmethod
    def forward(ctx, logits, label, gamma=2.0, ignore_index=-100):
        valid = label != ignore_index
        safe = label.masked_fill(~valid, 0).unsqueeze(1)
        logp = torch.log_softmax(logits, dim=1).gather(1, safe).squeeze(1)
        loss = -((1 - logp.exp()) ** gamma) * logp * valid
        ctx.save_for_backward(logits, safe, valid)
        ctx.gamma = gamma
        return loss.sum() / valid.sum().clamp(min=1)

    @staticmethod
    def backward(ctx, g):
        logits, safe, valid = ctx.saved_tensors
        logp_all = torch.log_softmax(logits, dim=1)
        logp = logp_all.gather(1, safe)
        p = logp.exp()
        count = valid.numel()
        slope = ctx.gamma * (1 - p) ** (ctx.gamma - 1) * p * logp - (1 - p) ** ctx.gamma
        slope = slope * valid.unsqueeze(1) * (g / count)
        onehot = torch.zeros_like(logits).scatter(1, safe, 1.0)
        return slope * (onehot - logp_all.exp()), None, None, None


class TweedieDeviance(Function):
    """Mean Tweedie deviance for 1 < power < 2; mu and y positive, weight optional."""

    @staticmethod
    def forward(mu, y, weight=None, power=1.5):
        a, b = 1 - power, 2 - power
        dev = 2 * (y**b / (a * b) - y * mu**a / a + mu**b / b)
        if weight is not None:
            dev = dev * weight
        return dev.mean()

    @staticmethod
    def setup_context(ctx, inputs, output):
        mu, y, weight, ctx.power = inputs
        ctx.save_for_backward(mu, y, weight)

    @staticmethod
    def backward(ctx, grad):
        mu, y, weight = ctx.saved_tensors
        a, b = 1 - ctx.power, 2 - ctx.power
        g = grad / mu.numel() * (1.0 if weight is None else weight)
        g_mu = 2 * g * (mu - y) * mu**-1.5
        g_y = g_weight = None
        if ctx.needs_input_grad[1]:
            g_y = 2 * g * (y**a - mu**a) / a
        if ctx.needs_input_grad[2]:
            dev = 2 * (y**b / (a * b) - y * mu**a / a + mu**b / b)
            g_weight = grad / mu.numel() * dev
        return g_mu, g_y, g_weight, None


def tweedie_loss(mu, y, weight=None, power=1.5):
    if not 1 < power < 2:
        raise ValueError("power must lie between 1 and 2")
    return TweedieDeviance.apply(mu, y, weight, power)


class HuberConcomitant(Function):
    """Huber's joint loss of residuals and a positive scale (0-dim tensor), averaged."""

    @staticmethod
    def forward(ctx, resid, scale, delta=1.345):
        z = resid / scale
        lin = z.clamp(-delta, delta)
        ctx.save_for_backward(resid, scale)
        ctx.delta = delta
        return (scale * (1 + lin * z - 0.5 * lin**2)).mean()

    @staticmethod
    def backward(ctx, grad_loss):
        resid, scale = ctx.saved_tensors
        z = resid.div_(scale)
        psi = z.clamp(-ctx.delta, ctx.delta)
        g = grad_loss / resid.numel()
        g_scale = (g * (1 - 0.5 * psi**2)).sum()
        return g * psi, g_scale, None


class BarronRobust(Function):
    """General robust loss, elementwise, alpha != 2; c broadcasts against x."""

    @staticmethod
    def forward(ctx, x, c, alpha=1.0):
        if alpha == 2:
            raise ValueError("alpha = 2 is plain least squares, use mse_loss")
        z2 = (x / c) ** 2
        b = abs(alpha - 2)
        ctx.save_for_backward(x, c)
        ctx.alpha = alpha
        if alpha == 0:
            return torch.log1p(0.5 * z2)
        return b / alpha * ((z2 / b + 1) ** (alpha / 2) - 1)

    @staticmethod
    def backward(ctx, g):
        x, c = ctx.saved_tensors
        z = x / c
        base = z**2 / abs(ctx.alpha - 2) + 1
        infl = g * z * base ** (ctx.alpha / 2 - 0.5)
        return infl / c, (-infl * z / c).sum_to_size(c.shape), None


class AftLogNormal(Function):
    """Log-normal accelerated failure time NLL with right censoring, mean over samples."""

    @staticmethod
    def forward(ctx, mu, log_sigma, time, event):
        sigma = log_sigma.exp()
        z = (time.log() - mu) / sigma
        log_pdf = -0.5 * z**2 - log_sigma - time.log() - 0.5 * math.log(2 * math.pi)
        log_surv = torch.special.log_ndtr(-z)
        mills = torch.exp(-0.5 * z**2 - 0.5 * math.log(2 * math.pi) - log_surv)
        ctx.save_for_backward(time, event, log_sigma, z, torch.where(event, z, mills))
        return -torch.where(event, log_pdf, log_surv).mean()

    @staticmethod
    def backward(ctx, grad_loss):
        time, event, log_sigma, z, slope = ctx.saved_tensors
        g = grad_loss / z.numel()
        sigma = log_sigma.exp()
        g_mu = g_ls = g_time = None
        if ctx.needs_input_grad[0]:
            g_mu = -g * slope / sigma
        if ctx.needs_input_grad[0]:
            g_ls = (g * (event.to(z.dtype) - slope * z)).sum_to_size(log_sigma.shape)
        if ctx.needs_input_grad[2]:
            g_time = g * (slope / sigma + event) / time
        return g_mu, g_ls, g_time, None


class NegBinomialNll(Function):
    """NB2 negative log likelihood: mean mu > 0, dispersion theta > 0, integer counts."""

    @staticmethod
    def forward(ctx, mu, theta, counts, mask: Optional[Tensor] = None):
        y = counts.to(mu.dtype)
        ll = torch.lgamma(y + theta) - torch.lgamma(theta) - torch.lgamma(y + 1)
        ll = (
            ll
            + theta * torch.log(theta / (theta + mu))
            + y * torch.log(mu / (theta + mu))
        )
        keep = torch.ones_like(mu) if mask is None else mask.to(mu.dtype)
        ctx.save_for_backward(mu, theta, counts, keep)
        return -(ll * keep).sum() / keep.sum().clamp(min=1)

    @staticmethod
    def backward(ctx, grad):
        mu, theta, counts, keep = ctx.saved_tensors
        y = counts.to(mu.dtype)
        g = grad * keep / keep.sum().clamp(min=1)
        odds = (y + theta) / (mu + theta)
        g_mu = g * (odds - y / mu)
        inner = (
            torch.digamma(y + theta)
            - torch.digamma(theta)
            + torch.log(theta / (mu + theta))
        )
        g_theta = g * (odds - 1 - inner)
        return g_mu, g_theta, None


class ConcordanceSurrogate(Function):
    """Smooth concordance loss: earlier events should have the higher score."""

    @staticmethod
    def forward(ctx, score, time, event, tau=1.0):
        pairs = event.unsqueeze(1) & (time.unsqueeze(1) < time.unsqueeze(0))
        gap = (score.unsqueeze(1) - score.unsqueeze(0)) / tau
        ctx.save_for_backward(score, pairs)
        ctx.tau = tau
        loss = torch.nn.functional.softplus(-gap) * pairs
        return loss.sum() / pairs.sum().clamp(min=1)

    @staticmethod
    def backward(ctx, grad_loss):
        score, pairs = ctx.saved_tensors
        gap = (score.unsqueeze(1) - score.unsqueeze(0)) / ctx.tau
        w = -torch.sigmoid(-gap) * pairs / ctx.tau
        g_gap = w / pairs.sum().clamp(min=1)
        g_score = g_gap.sum(1) - g_gap.sum(0)
        return g_score, None, None, None
