import torch


class OmegaRatio(torch.autograd.Function):
    """Omega ratio per strategy: rets (T, N), threshold () or (N,) -> (N,)."""

    @staticmethod
    def forward(ctx, rets, threshold, eps=1e-6):
        ctx.save_for_backward(rets, threshold)
        ctx.eps = eps
        ex = rets - threshold
        return ex.clamp(min=0).sum(0) / ((-ex).clamp(min=0).sum(0) + eps)

    @staticmethod
    def backward(ctx, g):
        rets, threshold = ctx.saved_tensors
        ex = rets - threshold
        gain = ex.clamp(min=0).sum(0)
        loss = (-ex).clamp(min=0).sum(0) + ctx.eps
        d = g * ((ex > 0) / loss + (ex < 0) * gain / loss)
        return d, -d.sum(0).sum_to_size(threshold.shape), None
