import torch


class _SubnetLinear(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, weight, scores, keep):
        n = max(1, int(keep * scores.numel()))
        idx = scores.flatten().topk(n).indices
        mask = torch.zeros_like(scores).flatten().index_fill(0, idx, 1.0).view_as(scores)
        ctx.save_for_backward(x, weight, mask)
        return x @ (weight * mask).t()

    @staticmethod
    def backward(ctx, gy):
        x, weight, mask = ctx.saved_tensors
        gx = gy @ (weight * mask)
        gW = gy.t() @ x
        return gx, gW * mask, gW * weight, None


def subnet_linear(x, weight, scores, keep=0.5):
    """Linear layer through the best-scored fraction `keep` of its weights (edge-popup).

    x (B, in), weight and scores (out, in).

    The selection is a straight-through estimator: in backward the 0/1 mask counts as the score
    itself (d mask / d scores = 1 everywhere), so an edge that is switched off gets a score gradient, too.
    """
    return _SubnetLinear.apply(x, weight, scores, keep)
