"""Generalised IoU loss as a registered operator."""
from typing import Tuple

import torch
from torch import Tensor


@torch.library.custom_op("ah_boxes_v1::giou_loss", mutates_args=())
def giou_loss(boxes1: Tensor, boxes2: Tensor, eps: float) -> Tensor:
    inter, union, hull = _areas(boxes1, boxes2)
    return 1 - inter / (union + eps) + (hull - union) / (hull + eps)


@giou_loss.register_fake
def _(boxes1, boxes2, eps):
    return boxes1.new_empty(boxes1.shape[:-1])


def _areas(b1: Tensor, b2: Tensor) -> Tuple[Tensor, Tensor, Tensor]:
    wh = (torch.min(b1[..., 2:], b2[..., 2:]) - torch.max(b1[..., :2], b2[..., :2])).clamp(min=0)
    inter = wh.prod(-1)
    union = (b1[..., 2:] - b1[..., :2]).prod(-1) + (b2[..., 2:] - b2[..., :2]).prod(-1) - inter
    hull = (torch.max(b1[..., 2:], b2[..., 2:]) - torch.min(b1[..., :2], b2[..., :2])).prod(-1)
    return inter, union, hull


def _setup_context(ctx, inputs, output):
    boxes1, boxes2, eps = inputs
    ctx.save_for_backward(boxes1, boxes2)
    ctx.eps = eps


def _box_grad(box, other, g_area, g_inter, g_hull):
    lo, hi = box[..., :2], box[..., 2:]
    olo, ohi = other[..., :2], other[..., 2:]
    size = (hi - lo).flip(-1)
    wh = (torch.min(hi, ohi) - torch.max(lo, olo)).flip(-1)
    overlap = (wh > 0).all(-1, keepdim=True)
    wh = torch.where(overlap, wh, torch.zeros_like(wh))
    whole = (torch.max(hi, ohi) - torch.min(lo, olo)).flip(-1)
    g_area, g_inter, g_hull = g_area.unsqueeze(-1), g_inter.unsqueeze(-1), g_hull.unsqueeze(-1)
    g_hi = g_area * size + g_inter * wh * (hi < ohi) + g_hull * whole * (hi > ohi)
    g_lo = -g_area * size - g_inter * wh * (lo > olo) - g_hull * whole * (lo < olo)
    return torch.cat([g_lo, g_hi], -1)


def _backward(ctx, grad):
    boxes1, boxes2 = ctx.saved_tensors
    inter, union, hull = _areas(boxes1, boxes2)
    g_union = grad * (inter / (union + ctx.eps) ** 2 - 1 / (hull + ctx.eps))
    g_inter = -grad / (union + ctx.eps) - g_union
    g_hull = grad * (union + ctx.eps) / (hull + ctx.eps) ** 2
    return (
        _box_grad(boxes1, boxes2, g_union, g_inter, g_hull),
        _box_grad(boxes2, boxes1, g_union, g_inter, g_hull),
        None,
    )


giou_loss.register_autograd(_backward, setup_context=_setup_context)


def generalized_box_iou_loss(boxes1: Tensor, boxes2: Tensor, reduction: str = "none", eps: float = 1e-7) -> Tensor:
    """
    Args:
        boxes1, boxes2: ``(N, 4)`` or ``(4,)`` boxes as ``(x1, y1, x2, y2)`` with ``x1 < x2`` and ``y1 < y2``
        reduction: ``'none'``, ``'mean'`` or ``'sum'``
        eps: keeps the denominators from zero
    """
    if boxes1.shape != boxes2.shape or boxes1.shape[-1] != 4:
        raise ValueError("boxes1 and boxes2 must both be (N, 4)")
    loss = giou_loss(boxes1, boxes2, eps)
    if reduction == "mean":
        return loss.mean() if loss.numel() > 0 else 0.0 * loss.sum()
    if reduction == "sum":
        return loss.sum()
    if reduction != "none":
        raise ValueError(f"Invalid Value for arg 'reduction': '{reduction}'")
    return loss
