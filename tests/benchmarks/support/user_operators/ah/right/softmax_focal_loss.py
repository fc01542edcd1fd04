import torch
import torch.nn as nn
from torch.autograd import Function


class SoftmaxFocalLossFunction(Function):
    @staticmethod
    def forward(ctx, input, target, gamma=2.0, alpha=0.25, weight=None, reduction="mean"):
        assert target.dtype == torch.long
        assert input.dim() == 2 and target.dim() == 1 and input.size(0) == target.size(0)
        assert gamma >= 1, "gamma below 1 is not supported"
        assert reduction in ("none", "mean", "sum")
        if weight is not None:
            assert weight.dim() == 1 and input.size(1) == weight.size(0)
        ctx.gamma, ctx.alpha, ctx.reduction = float(gamma), float(alpha), reduction
        ctx.save_for_backward(input, target, weight)
        lp = input.log_softmax(1).gather(1, target.unsqueeze(1)).squeeze(1)
        loss = -alpha * (1 - lp.exp()) ** gamma * lp
        if weight is not None:
            loss = loss * weight[target]
        if reduction == "mean":
            return loss.mean()
        return loss.sum() if reduction == "sum" else loss

    @staticmethod
    def backward(ctx, grad_output):
        input, target, weight = ctx.saved_tensors
        logp = input.log_softmax(1)
        p_all = logp.exp()
        lp = logp.gather(1, target.unsqueeze(1))
        p = lp.exp()
        slope = ctx.alpha * (ctx.gamma * (1 - p) ** (ctx.gamma - 1) * p * lp - (1 - p) ** ctx.gamma)
        onehot = nn.functional.one_hot(target, input.size(1)).to(input.dtype)
        grad_input = slope * (onehot - p_all)
        if weight is not None:
            grad_input = grad_input * weight[target].unsqueeze(1)
        if ctx.reduction == "mean":
            grad_input = grad_input / input.size(0)
        grad_output = grad_output.unsqueeze(1) if ctx.reduction == "none" else grad_output
        return grad_input * grad_output, None, None, None, None, None


class SoftmaxFocalLoss(nn.Module):
    """Focal loss on softmax scores.

    ``input`` has shape (N, C) and ``target`` (N,); ``weight`` are C constants.
    """

    def __init__(self, gamma=2.0, alpha=0.25, weight=None, reduction="mean"):
        super().__init__()
        self.gamma = float(gamma)
        self.alpha = float(alpha)
        self.register_buffer("weight", weight)
        self.reduction = reduction

    def forward(self, input, target):
        return SoftmaxFocalLossFunction.apply(
            input, target, self.gamma, self.alpha, self.weight, self.reduction
        )

    def __repr__(self):
        return f"{self.__class__.__name__}(gamma={self.gamma}, alpha={self.alpha}, reduction={self.reduction})"
