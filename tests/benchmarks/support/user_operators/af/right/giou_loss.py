import torch
from torch.autograd.function import once_differentiable


class GIoULossFunction(torch.autograd.Function):
    """Per box 1 - GIoU for xyxy boxes, target is a constant."""

    @staticmethod
    def forward(ctx, pred, target, eps):
        area_p = (pred[:, 2] - pred[:, 0]) * (pred[:, 3] - pred[:, 1])
        area_t = (target[:, 2] - target[:, 0]) * (target[:, 3] - target[:, 1])
        lt = torch.maximum(pred[:, :2], target[:, :2])
        rb = torch.minimum(pred[:, 2:], target[:, 2:])
        wh = (rb - lt).clamp(min=0)
        inter = wh[:, 0] * wh[:, 1]
        union = area_p + area_t - inter + eps
        enc_wh = torch.maximum(pred[:, 2:], target[:, 2:]) - torch.minimum(pred[:, :2], target[:, :2])
        enc = enc_wh[:, 0] * enc_wh[:, 1] + eps
        ctx.save_for_backward(pred, target, wh, inter, union, enc_wh, enc)
        return 1 - inter / union + (enc - union) / enc

    @staticmethod
    @once_differentiable
    def backward(ctx, grad):
        pred, target, wh, inter, union, enc_wh, enc = ctx.saved_tensors
        g_union = grad * (inter / union ** 2 - 1 / enc)
        g_inter = -grad / union - g_union
        g_enc = grad * union / enc ** 2

        out = torch.zeros_like(pred)
        p_wh = pred[:, 2:] - pred[:, :2]
        g_size = g_union[:, None] * p_wh.flip(1)
        out[:, 2:] += g_size
        out[:, :2] -= g_size

        overlap = (wh > 0).all(1, keepdim=True)
        g_wh = g_inter[:, None] * wh.flip(1) * overlap
        out[:, 2:] += g_wh * (pred[:, 2:] < target[:, 2:])
        out[:, :2] -= g_wh * (pred[:, :2] > target[:, :2])

        g_ewh = g_enc[:, None] * enc_wh.flip(1)
        out[:, 2:] += g_ewh * (pred[:, 2:] > target[:, 2:])
        out[:, :2] -= g_ewh * (pred[:, :2] < target[:, :2])
        return out, None, None


def giou_loss(pred, target, weight=None, reduction="mean", avg_factor=None, eps=1e-7):
    loss = GIoULossFunction.apply(pred, target, eps)
    if weight is not None:
        loss = loss * weight
    if reduction == "none":
        return loss
    if reduction == "sum":
        return loss.sum()
    return loss.sum() / (avg_factor or loss.numel())
