import torch
import torch.nn.functional as F


class HeatmapPenalty(torch.autograd.Function):
    """CornerNet / CenterNet keypoint loss on logits.

    logits (B, C, H, W), heat (B, C, H, W) in [0, 1], exactly 1 at keypoints, no gradient.
    Summed, over the number of keypoints.
    """

    @staticmethod
    def forward(ctx, logits, heat, alpha=2.0, beta=4.0):
        ctx.save_for_backward(logits, heat)
        ctx.alpha, ctx.beta = alpha, beta
        p = torch.sigmoid(logits)
        pos = heat == 1
        loss = torch.where(
            pos,
            (1 - p) ** alpha * F.logsigmoid(logits),
            (1 - heat) ** beta * p ** alpha * F.logsigmoid(-logits),
        )
        return -loss.sum() / pos.sum().clamp(min=1)

    @staticmethod
    def backward(ctx, grad):
        logits, heat = ctx.saved_tensors
        alpha, beta = ctx.alpha, ctx.beta
        p = torch.sigmoid(logits)
        pos = heat == 1
        n = pos.sum().clamp(min=1)
        at_pos = (1 - p) ** alpha * (alpha * p * F.logsigmoid(logits) - (1 - p))
        at_neg = (1 - heat) ** beta * p ** alpha * (p - alpha * (1 - p) * F.logsigmoid(-logits))
        scale = grad / n
        return torch.where(pos, at_pos, at_neg) * scale, None, None, None
