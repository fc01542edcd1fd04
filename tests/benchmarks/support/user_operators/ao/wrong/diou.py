import torch
from torch.autograd.function import once_differentiable


class DIoULoss(torch.autograd.Function):
    """1 - IoU + d^2 / c^2 for aligned boxes in xyxy form, pred and target (N, 4). No gradient for target."""

    @staticmethod
    def forward(ctx, pred, target, eps=1e-7):
        ctx.save_for_backward(pred, target)
        ctx.eps = eps
        lt = torch.max(pred[:, :2], target[:, :2])
        rb = torch.min(pred[:, 2:], target[:, 2:])
        inter = (rb - lt).clamp(min=0).prod(1)
        area_p = (pred[:, 2:] - pred[:, :2]).prod(1)
        area_t = (target[:, 2:] - target[:, :2]).prod(1)
        union = area_p + area_t - inter + eps
        rho2 = (((pred[:, :2] + pred[:, 2:]) - (target[:, :2] + target[:, 2:])) / 2).pow(2).sum(1)
        enc = torch.max(pred[:, 2:], target[:, 2:]) - torch.min(pred[:, :2], target[:, :2])
        return 1 - inter / union + rho2 / (enc.pow(2).sum(1) + eps)

    @staticmethod
    @once_differentiable
    def backward(ctx, g):
        pred, target = ctx.saved_tensors
        eps = ctx.eps
        p1, p2, t1, t2 = pred[:, :2], pred[:, 2:], target[:, :2], target[:, 2:]
        side = torch.min(p2, t2) - torch.max(p1, t1)
        pos = side.clamp(min=0)
        wh = p2 - p1
        inter = pos.prod(1)
        union = wh.prod(1) + (t2 - t1).prod(1) - inter + eps

        # d inter, d area with respect to the two corners
        d_side = pos.flip(1)
        di1, di2 = -d_side * (p1 > t1), d_side * (p2 < t2)
        da1, da2 = -wh.flip(1), wh.flip(1)
        ki = (1 / union + inter / union ** 2)[:, None]
        ka = (-inter / union ** 2)[:, None]
        g1 = -(ki * di1 + ka * da1)
        g2 = -(ki * di2 + ka * da2)

        delta = ((p1 + p2) - (t1 + t2)) / 2
        enc = torch.max(p2, t2) - torch.min(p1, t1)
        c2 = (enc.pow(2).sum(1) + eps)[:, None]
        rho2 = delta.pow(2).sum(1)[:, None]
        de = -2 * enc * rho2 / c2 ** 2
        g1 = g1 + delta / c2 - de * (p1 < t1)
        g2 = g2 + delta / c2 + de * (p2 > t2)
        return torch.cat([g1, g2], 1) * g[:, None], None, None
