import torch


class RoIMean(torch.autograd.Function):
    """Mean of features (C, H, W) inside integer boxes (R, 4) = x0, y0, x1, y1, ends included -> (R, C)."""

    @staticmethod
    def forward(ctx, feat, boxes):
        ctx.save_for_backward(boxes)
        ctx.shape = feat.shape
        if boxes.min() < 0 or (boxes[:, :2] > boxes[:, 2:]).any():
            raise ValueError("boxes must be x0 <= x1, y0 <= y1 and not negative")
        if boxes[:, 2].max() >= feat.shape[2] or boxes[:, 3].max() >= feat.shape[1]:
            raise IndexError("box outside of the feature map")
        out = [feat[:, y0:y1 + 1, x0:x1 + 1].mean((1, 2)) for x0, y0, x1, y1 in boxes.tolist()]
        return torch.stack(out)

    @staticmethod
    def backward(ctx, g):
        boxes, = ctx.saved_tensors
        gf = g.new_zeros(ctx.shape)
        for r, (x0, y0, x1, y1) in enumerate(boxes.tolist()):
            area = (x1 - x0 + 1) * (y1 - y0 + 1)
            gf[:, y0:y1 + 1, x0:x1 + 1] += (g[r] / area)[:, None, None]
        return gf, None
