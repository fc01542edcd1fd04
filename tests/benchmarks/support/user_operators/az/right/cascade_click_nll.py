import torch
import torch.nn.functional as F
from torch.autograd import Function


class CascadeClickNLL(Function):
    """Cascade click model: the user scans from the top and stops at the first click.

    attraction: (B, K) logits; first_click: (B,) long, K where the session has no click;
    length: (B,) long, number of results shown. Returns the NLL of each session, (B,).
    """

    @staticmethod
    def forward(ctx, attraction, first_click, length):
        if attraction.dim() != 2:
            raise ValueError("attraction must be (sessions, positions)")
        rank = torch.arange(attraction.size(1), device=attraction.device)
        skipped = rank < torch.minimum(first_click, length)[:, None]
        clicked = rank == first_click[:, None]
        ctx.save_for_backward(attraction, first_click, length)
        nll = skipped * F.softplus(attraction) + clicked * F.softplus(-attraction)
        return nll.sum(1)

    @staticmethod
    def backward(ctx, grad_nll):
        attraction, first_click, length = ctx.saved_tensors
        rank = torch.arange(attraction.size(1), device=attraction.device)
        skipped = rank < torch.minimum(first_click, length)[:, None]
        clicked = rank == first_click[:, None]
        p = torch.sigmoid(attraction)
        grad = skipped * p - clicked * (1 - p)
        return grad_nll[:, None] * grad, None, None
