import math
from typing import List

import torch

MAX_LOG_RATIO = math.log(1000.0 / 16)


@torch.library.custom_op("detops::decode_boxes", mutates_args=())
def decode_boxes(deltas: torch.Tensor, anchors: torch.Tensor, weights: List[float]) -> torch.Tensor:
    """
    deltas:  (N, 4) as dx, dy, dw, dh
    anchors: (N, 4) as x1, y1, x2, y2
    weights: the four factors that the regression targets were scaled with
    """
    w = deltas.new_tensor(weights)
    d = deltas / w
    size = anchors[:, 2:] - anchors[:, :2]
    centre = (anchors[:, 2:] + anchors[:, :2]) / 2
    c = d[:, :2] * size + centre
    half = d[:, 2:].clamp(max=MAX_LOG_RATIO).exp() * size / 2
    return torch.cat([c - half, c + half], 1)


@decode_boxes.register_fake
def _(deltas, anchors, weights):
    return torch.empty_like(deltas)


def _setup(ctx, inputs, output):
    deltas, anchors, weights = inputs
    ctx.save_for_backward(deltas, anchors)
    ctx.weights = weights


def _backward(ctx, g):
    deltas, anchors = ctx.saved_tensors
    w = deltas.new_tensor(ctx.weights)
    d = deltas / w
    size = anchors[:, 2:] - anchors[:, :2]
    ratio = d[:, 2:].clamp(max=MAX_LOG_RATIO).exp()
    g_c = g[:, :2] + g[:, 2:]
    g_half = g[:, 2:] - g[:, :2]
    g_log = (g_half * ratio * size / 2).masked_fill(d[:, 2:] > MAX_LOG_RATIO, 0)
    g_deltas = torch.cat([g_c * size, g_log], 1) / w
    g_size = g_c * d[:, :2] + g_half * ratio / 2
    g_anchors = torch.cat([g_c / 2 - g_size, g_c / 2 + g_size], 1)
    return g_deltas, None, None


decode_boxes.register_autograd(_backward, setup_context=_setup)
