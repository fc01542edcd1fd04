import torch


class _PolarIoU(torch.autograd.Function):
    @staticmethod
    def forward(ctx, pred, target, valid):
        ctx.save_for_backward(pred, target, valid)
        hi = torch.max(pred, target).sum(-1)
        lo = torch.min(pred, target).sum(-1)
        loss = (hi / lo).log()
        return (loss * valid).sum() / valid.sum().clamp(min=1)

    @staticmethod
    def backward(ctx, g):
        pred, target, valid = ctx.saved_tensors
        hi = torch.max(pred, target).sum(-1, keepdim=True)
        lo = torch.min(pred, target).sum(-1, keepdim=True)
        d = (pred > target) / hi - (pred < target) / lo
        w = valid.to(pred.dtype) / valid.numel()
        return g * d * w.unsqueeze(-1), None, None


def polar_iou(pred, target, valid=None):
    """PolarMask's IoU loss.

    pred (N, K) positive ray lengths, target (N, K) the labels, valid (N,) bool.
    Mean over the valid instances.
    """
    if valid is None:
        valid = torch.ones(pred.shape[0], dtype=torch.bool, device=pred.device)
    return _PolarIoU.apply(pred, target, valid)
