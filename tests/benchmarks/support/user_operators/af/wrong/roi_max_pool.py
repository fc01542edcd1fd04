import torch
from torch.autograd.function import once_differentiable


class RoIMaxPool(torch.autograd.Function):
    @staticmethod
    def forward(ctx, feat, rois, size):
        C, H, W = feat.shape
        out = feat.new_zeros(len(rois), C, size, size)
        argmax = torch.full(out.shape, -1, dtype=torch.long)
        flat = feat.reshape(C, -1)
        for k, (x1, y1, x2, y2) in enumerate(rois.tolist()):
            for i in range(size):
                ya = y1 + (i * (y2 - y1)) // size
                yb = y1 + -((-(i + 1) * (y2 - y1)) // size)
                for j in range(size):
                    xa = x1 + (j * (x2 - x1)) // size
                    xb = x1 + -((-(j + 1) * (x2 - x1)) // size)
                    yy = [y for y in range(max(ya, 0), min(yb, H))]
                    xx = [x for x in range(max(xa, 0), min(xb, W))]
                    if not yy or not xx:
                        continue  # bin outside of the map
                    cells = torch.tensor([y * W + x for y in yy for x in xx])
                    best, at = flat[:, cells].max(1)
                    out[k, :, i, j] = best
                    argmax[k, :, i, j] = cells[at]
        ctx.save_for_backward(argmax)
        ctx.shape = feat.shape
        return out

    @staticmethod
    @once_differentiable
    def backward(ctx, grad_out):
        (argmax,) = ctx.saved_tensors
        C, H, W = ctx.shape
        grad = grad_out.masked_fill_(argmax < 0, 0)
        grad = grad.transpose(0, 1).reshape(C, -1)
        where = argmax.clamp(min=0).transpose(0, 1).reshape(C, -1)
        grad_feat = grad.new_zeros(C, H * W).scatter_add_(1, where, grad)
        return grad_feat.view(C, H, W), None, None


def roi_max_pool(feat, rois, size=2):
    """feat (C, H, W); rois (K, 4) int64, end exclusive -> (K, C, size, size); empty bins give 0"""
    return RoIMaxPool.apply(feat, rois, size)
