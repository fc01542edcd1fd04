import math

import torch

DWH_CLIP = math.log(1000.0 / 16)


class DecodeBoxes(torch.autograd.Function):
    """Regression deltas (N, 4) on anchors (N, 4) -> xyxy boxes (N, 4)."""

    @staticmethod
    def forward(ctx, deltas, anchors, weights=(1.0, 1.0, 1.0, 1.0), clip=DWH_CLIP):
        ctx.save_for_backward(deltas, anchors)
        ctx.weights, ctx.clip = weights, clip
        wh = anchors[:, 2:] - anchors[:, :2]
        ctr = anchors[:, :2] + 0.5 * wh
        wt = deltas.new_tensor(weights)
        d = deltas / wt
        c = d[:, :2] * wh + ctr
        s = torch.exp(d[:, 2:].clamp(max=clip)) * wh
        return torch.cat([c - 0.5 * s, c + 0.5 * s], dim=1)

    @staticmethod
    def backward(ctx, grad_boxes):
        deltas, anchors = ctx.saved_tensors
        wt = deltas.new_tensor(ctx.weights)
        wh = anchors[:, 2:] - anchors[:, :2]
        d = deltas / wt
        e = torch.exp(d[:, 2:].clamp(max=ctx.clip))

        g_c = grad_boxes[:, :2] + grad_boxes[:, 2:]
        g_s = 0.5 * (grad_boxes[:, 2:] - grad_boxes[:, :2])
        grad_deltas = grad_anchors = None
        if ctx.needs_input_grad[0]:
            keep = (d[:, 2:] <= ctx.clip).to(e.dtype)
            g_log = g_s * e * wh * keep
            grad_deltas = torch.cat([g_c * wh, g_log], dim=1) / wt
        if ctx.needs_input_grad[1]:
            g_wh = g_c * (d[:, :2] + 0.5) + g_s * e
            grad_anchors = torch.cat([g_c - g_wh, g_wh], dim=1)
        return grad_deltas, grad_anchors, None, None
