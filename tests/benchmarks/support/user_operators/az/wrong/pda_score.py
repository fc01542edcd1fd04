import torch
import torch.nn.functional as F
from torch.autograd import Function


class PDAScore(Function):
    """Popularity-adjusted matching score (elu(score) + 1) * popularity ** gamma.

    score and popularity broadcast; popularity >= 0 is a statistic of the log (0 for an item never
    shown) and gets no gradient; gamma is a positive scalar tensor.
    """

    @staticmethod
    def forward(ctx, score, popularity, gamma):
        if gamma.dim() != 0:
            raise ValueError("gamma must be a scalar tensor")
        ctx.save_for_backward(score, popularity, gamma)
        return (F.elu(score) + 1) * popularity**gamma

    @staticmethod
    def backward(ctx, grad):
        score, popularity, gamma = ctx.saved_tensors
        lift = popularity**gamma
        grad_score = grad_gamma = None
        if ctx.needs_input_grad[0]:
            slope = torch.where(score > 0, 1, score.clamp(max=0).exp())
            grad_score = (grad * lift * slope).sum_to_size(score.shape)
        if ctx.needs_input_grad[2]:
            grad_gamma = (grad * (F.elu(score) + 1) * lift * popularity.log()).sum()
        return grad_score, None, grad_gamma
