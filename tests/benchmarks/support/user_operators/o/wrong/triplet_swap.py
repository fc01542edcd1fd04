import torch
from torch.autograd import Function


class TripletLossWithSwap(Function):
    """mean(relu(margin + d(a, p) - d(a, n))) with squared distances over rows of (N, D).

    With swap=True the negative distance is the smaller one of d(a, n) and d(p, n).
    """

    @staticmethod
    def _terms(a, p, n, margin, swap):
        d_an = (a - n).square().sum(1)
        via_pos = torch.zeros_like(d_an, dtype=torch.bool)
        d_neg = d_an
        if swap:
            d_pn = (p - n).square().sum(1)
            via_pos = d_pn < d_an
            d_neg = torch.where(via_pos, d_pn, d_an)
        return margin + (a - p).square().sum(1) - d_neg, via_pos

    @staticmethod
    def forward(ctx, anchor, positive, negative, margin=1.0, swap=False):
        if not anchor.shape == positive.shape == negative.shape:
            raise ValueError("anchor, positive and negative must have one shape")
        ctx.save_for_backward(anchor, positive, negative)
        ctx.margin, ctx.swap = margin, swap
        hinge, _ = TripletLossWithSwap._terms(anchor, positive, negative, margin, swap)
        return hinge.clamp(min=0).mean()

    @staticmethod
    def backward(ctx, grad):
        a, p, n = ctx.saved_tensors
        hinge, via_pos = TripletLossWithSwap._terms(a, p, n, ctx.margin, ctx.swap)
        scale = (grad * (hinge > 0) / hinge.numel()).unsqueeze(1)
        via_pos = via_pos.unsqueeze(1)
        g_a = 2 * (a - p) - 2 * (a - n) * ~via_pos
        g_p = -2 * (a - p)
        g_n = 2 * (a - n) * ~via_pos + 2 * (p - n) * via_pos
        return scale * g_a, scale * g_p, scale * g_n, None, None
