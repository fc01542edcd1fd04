import math

import torch
from torch.autograd.function import once_differentiable


class RoIPool(torch.autograd.Function):
    """
    features: C x H x W
    rois:     K x 4 (x1, y1, x2, y2), inclusive integer corners
    returns   K x C x P x P maxima and their flat indices (-1 where a bin is empty)
    """

    @staticmethod
    def forward(ctx, features, rois, P):
        C, H, W = features.shape
        K = rois.shape[0]
        out = features.new_zeros(K, C, P, P)
        arg = torch.full((K, C, P, P), -1, dtype=torch.long, device=features.device)
        for k in range(K):
            x1, y1, x2, y2 = rois[k].tolist()
            h, w = max(y2 - y1 + 1, 1), max(x2 - x1 + 1, 1)
            for i in range(P):
                ys, ye = (min(max(v + y1, 0), H) for v in (i * h // P, math.ceil((i + 1) * h / P)))
                for j in range(P):
                    xs, xe = (min(max(v + x1, 0), W) for v in (j * w // P, math.ceil((j + 1) * w / P)))
                    if ye <= ys or xe <= xs:
                        continue
                    v, a = features[:, ys:ye, xs:xe].reshape(C, -1).max(1)
                    out[k, :, i, j] = v
                    arg[k, :, i, j] = (a // (xe - xs) + ys) * W + a % (xe - xs) + xs
        ctx.save_for_backward(arg)
        ctx.size = (C, H, W)
        ctx.mark_non_differentiable(arg)
        return out, arg

    @staticmethod
    @once_differentiable
    def backward(ctx, grad, _):
        arg, = ctx.saved_tensors
        C, H, W = ctx.size
        grad = torch.where(arg >= 0, grad, torch.zeros_like(grad))
        src = grad.transpose(0, 1).reshape(C, -1)
        idx = arg.transpose(0, 1).reshape(C, -1).clamp(min=0)
        gx = grad.new_zeros(C, H * W).scatter_add_(1, idx, src)
        return gx.view(C, H, W), None, None
