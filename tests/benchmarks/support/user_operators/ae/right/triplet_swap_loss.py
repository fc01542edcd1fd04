import torch
from torch.autograd.function import once_differentiable


def _dist(x, y, eps):
    diff = x - y + eps
    return diff, diff.norm(dim=-1)


class _TripletSwap(torch.autograd.Function):
    @staticmethod
    def forward(ctx, anchor, positive, negative, margin, swap, eps):
        d_ap, ap = _dist(anchor, positive, eps)
        d_an, an = _dist(anchor, negative, eps)
        d_pn, pn = _dist(positive, negative, eps)
        swapped = (pn < an) if swap else torch.zeros_like(an, dtype=torch.bool)
        neg = torch.where(swapped, pn, an)
        loss = (ap - neg + margin).clamp(min=0)
        ctx.save_for_backward(d_ap / ap[:, None], d_an / an[:, None], d_pn / pn[:, None], swapped, loss > 0)
        return loss

    @staticmethod
    @once_differentiable
    def backward(ctx, g):
        u_ap, u_an, u_pn, swapped, active = ctx.saved_tensors
        g = (g * active)[:, None]
        s = swapped[:, None]
        zero = torch.zeros_like(u_an)
        ga = u_ap - torch.where(s, zero, u_an)
        gp = -u_ap - torch.where(s, u_pn, zero)
        gn = torch.where(s, u_pn, u_an)
        return g * ga, g * gp, g * gn, None, None, None


def triplet_margin_loss(anchor, positive, negative, margin=1.0, swap=False, eps=1e-6, reduction="mean"):
    """Euclidean triplet loss for (N, D) embeddings. With ``swap`` the harder of the two negatives distances counts."""
    loss = _TripletSwap.apply(anchor, positive, negative, margin, swap, eps)
    return {"mean": loss.mean, "sum": loss.sum, "none": loss.clone}[reduction]()
