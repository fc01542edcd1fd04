import torch


class GaussianSoftNMS(torch.autograd.Function):
    """Decay every score by the boxes that score higher.

    Args:
        scores: (N,) distinct scores
        iou: (N, N) pairwise overlaps
        sigma (float): width of the decay
    """

    @staticmethod
    def forward(ctx, scores, iou, sigma=0.5):
        higher = (scores[None, :] > scores[:, None]).to(iou.dtype)
        ctx.sigma = sigma
        ctx.save_for_backward(scores, iou)
        return scores * torch.exp(-(iou**2 * higher).sum(1) / sigma)

    @staticmethod
    def backward(ctx, grad):
        scores, iou = ctx.saved_tensors
        higher = (scores[None, :] > scores[:, None]).to(iou.dtype)
        w = torch.exp(-(iou**2 * higher).sum(1) / ctx.sigma)
        d_iou = -2.0 / ctx.sigma * (grad * scores * w)[:, None] * iou * higher
        return grad * w, d_iou, None
