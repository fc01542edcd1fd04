import torch
from torch.autograd.function import once_differentiable


class GIoULoss(torch.autograd.Function):
    """1 - GIoU of paired boxes (N, 4) in x1, y1, x2, y2.

    Both boxes get gradients. Where two corner coordinates are equal the predicted box is
    taken as the inner one for the intersection and the outer one for the hull.
    """

    @staticmethod
    def forward(ctx, pred, target, eps: float = 1e-7, reduction: str = "mean"):
        lt_i = torch.max(pred[:, :2], target[:, :2])
        rb_i = torch.min(pred[:, 2:], target[:, 2:])
        wh_i = (rb_i - lt_i).clamp(min=0)
        inter = wh_i[:, 0] * wh_i[:, 1]
        wh_p = pred[:, 2:] - pred[:, :2]
        wh_t = target[:, 2:] - target[:, :2]
        union = wh_p.prod(1) + wh_t.prod(1) - inter + eps
        wh_c = torch.max(pred[:, 2:], target[:, 2:]) - torch.min(pred[:, :2], target[:, :2])
        hull = wh_c.prod(1) + eps
        giou = inter / union - (hull - union) / hull
        ctx.save_for_backward(pred, target, wh_i, inter, union, wh_c, hull)
        ctx.reduction = reduction
        loss = 1 - giou
        if reduction == "mean":
            return loss.mean() if loss.numel() else loss.sum()
        if reduction == "sum":
            return loss.sum()
        return loss

    @staticmethod
    @once_differentiable
    def backward(ctx, grad_output):
        pred, target, wh_i, inter, union, wh_c, hull = ctx.saved_tensors
        n = pred.size(0)
        g = -grad_output.expand(n)
        if ctx.reduction == "mean":
            g = g / max(n, 1)
        # giou = inter / union - 1 + union / hull
        g_union = g * (1 / hull - inter / union ** 2)
        g_inter = g / union - g_union
        g_hull = -g * union / hull ** 2

        overlap = ((wh_i[:, 0] > 0) & (wh_i[:, 1] > 0)).unsqueeze(1)
        g_whi = g_inter.unsqueeze(1) * wh_i.flip(1) * overlap
        g_whc = g_hull.unsqueeze(1) * wh_c.flip(1)

        p_lt, p_rb = pred[:, :2], pred[:, 2:]
        t_lt, t_rb = target[:, :2], target[:, 2:]
        in_lt, in_rb = p_lt >= t_lt, p_rb <= t_rb
        out_lt, out_rb = p_lt <= t_lt, p_rb >= t_rb

        area_p = g_union.unsqueeze(1) * (p_rb - p_lt).flip(1)
        area_t = g_union.unsqueeze(1) * (t_rb - t_lt).flip(1)
        g_pred = torch.cat((
            -g_whi * in_lt - g_whc * out_lt - area_p,
            g_whi * in_rb + g_whc * out_rb + area_p), dim=1)
        g_target = torch.cat((
            -g_whi * ~in_lt - g_whc * ~out_lt - area_t,
            g_whi * ~in_rb + g_whc * ~out_rb + area_t), dim=1)
        return g_pred, g_target, None, None
