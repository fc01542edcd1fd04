import torch


class PiecewiseLinearCDF(torch.autograd.Function):

    @staticmethod
    def forward(ctx, x, logits):
        K = logits.numel()
        w = torch.softmax(logits, 0)
        k = (x * K).floor().long().clamp(0, K - 1)
        frac = x * K - k
        left = torch.cumsum(w, 0) - w
        ctx.save_for_backward(x, logits, k)
        return left[k] + frac * w[k], torch.log(w[k] * K)

    @staticmethod
    def backward(ctx, gy, gld):
        x, logits, k = ctx.saved_tensors
        K = logits.numel()
        w = torch.softmax(logits, 0)
        frac = x * K - k
        gx = gy * w[k] * K
        inside = torch.zeros_like(w).index_add(0, k, gy * frac + gld / w[k])
        per_bin = torch.zeros_like(w).index_add(0, k, gy)
        # every bin to the left of the hit one moves the output fully
        right = per_bin.flip(0).cumsum(0).flip(0)
        gw = inside + right
        return gx, w * (gw - (w * gw).sum())
