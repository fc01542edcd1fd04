import torch
import torch.nn.functional as F


class OddsRatioLoss(torch.autograd.Function):
    """ORPO's odds ratio term.

    Args:
        chosen, rejected: (B,) length-normalised log-probabilities, negative.
        reduction: "mean", "sum" or "none".
    """

    @staticmethod
    def forward(ctx, chosen, rejected, reduction="mean"):
        ratio = (chosen - rejected) - (torch.log1p(-chosen.exp()) - torch.log1p(-rejected.exp()))
        loss = -F.logsigmoid(ratio)
        ctx.save_for_backward(chosen, rejected)
        ctx.reduction = reduction
        if reduction == "mean":
            return loss.mean()
        return loss.sum() if reduction == "sum" else loss

    @staticmethod
    def backward(ctx, g):
        chosen, rejected = ctx.saved_tensors
        ratio = (chosen - rejected) - (torch.log1p(-chosen.exp()) - torch.log1p(-rejected.exp()))
        g = -g * torch.sigmoid(-ratio)
        if ctx.reduction == "mean":
            g = g / ratio.numel()
        return g / -torch.expm1(chosen), g / torch.expm1(rejected), None
