import torch


class _Focal(torch.autograd.Function):
    @staticmethod
    def forward(ctx, logits, sign, mask, gamma, alpha, reduction):
        ctx.save_for_backward(logits, sign, mask)
        ctx.opts = gamma, alpha, reduction
        z = logits * sign
        log_pt = torch.nn.functional.logsigmoid(z)
        a = torch.where(sign > 0, alpha, 1 - alpha)
        loss = -a * torch.sigmoid(-z) ** gamma * log_pt * mask
        if reduction == "none":
            return loss
        total = loss.sum()
        return total if reduction == "sum" else total / mask.sum().clamp(min=1)

    @staticmethod
    def backward(ctx, g):
        logits, sign, mask = ctx.saved_tensors
        gamma, alpha, reduction = ctx.opts
        if reduction == "mean":
            g = g / mask.numel()
        z = logits * sign
        pt = torch.sigmoid(z)
        a = torch.where(sign > 0, alpha, 1 - alpha)
        dz = a * torch.sigmoid(-z) ** gamma * (gamma * pt * torch.nn.functional.logsigmoid(z) - torch.sigmoid(-z))
        return g * dz * sign * mask, None, None, None, None, None


def focal_loss(logits, target, mask=None, gamma=2.0, alpha=0.25, reduction="mean"):
    """Binary focal loss with 0/1 targets.

    mask marks the valid anchors; "mean" divides by their number.
    """
    sign = target.to(logits.dtype) * 2 - 1
    mask = torch.ones_like(sign) if mask is None else mask.to(logits.dtype)
    return _Focal.apply(logits, sign, mask, gamma, alpha, reduction)
