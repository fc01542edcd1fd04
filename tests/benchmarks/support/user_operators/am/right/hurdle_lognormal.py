import torch
import torch.nn.functional as F


class HurdleLogNormal(torch.autograd.Function):
    """Zero inflated log-normal loss for customer value.

    logit, mu, raw: (N,) heads of the network, the scale is softplus(raw)
    value: (N,) observed value >= 0 (not differentiated)
    """

    @staticmethod
    def forward(ctx, logit, mu, raw, value, reduction="mean"):
        ctx.save_for_backward(logit, mu, raw, value)
        ctx.reduction = reduction
        bought = (value > 0).to(mu.dtype)
        logv = torch.where(value > 0, value, torch.ones_like(value)).log()
        s = F.softplus(raw)
        loss = F.softplus(logit) - bought * logit
        loss = loss + bought * (logv + s.log() + 0.5 * ((logv - mu) / s) ** 2)
        if reduction == "mean":
            return loss.mean()
        if reduction == "sum":
            return loss.sum()
        return loss

    @staticmethod
    def backward(ctx, g):
        logit, mu, raw, value = ctx.saved_tensors
        if ctx.reduction == "mean":
            g = g / mu.numel()
        bought = (value > 0).to(mu.dtype)
        logv = torch.where(value > 0, value, torch.ones_like(value)).log()
        s = F.softplus(raw)
        z = (logv - mu) / s
        g_logit = g * (torch.sigmoid(logit) - bought)
        g_mu = -g * bought * z / s
        g_s = g * bought * (1 - z * z) / s
        return g_logit, g_mu, g_s * torch.sigmoid(raw), None, None
