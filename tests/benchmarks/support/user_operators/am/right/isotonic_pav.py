import torch
from torch.autograd.function import once_differentiable


class IsotonicPAV(torch.autograd.Function):
    """Weighted isotonic regression of a sequence (pool adjacent violators).

    y: (N,); weight: (N,) positive. Increasing fit, or decreasing with ``increasing=False``.
    """

    @staticmethod
    def forward(ctx, y, weight, increasing=True):
        ys = (y if increasing else -y).tolist()
        blocks = []  # mean, weight, length
        for value, w in zip(ys, weight.tolist()):
            blocks.append([value, w, 1])
            while len(blocks) > 1 and blocks[-2][0] >= blocks[-1][0]:
                m2, w2, n2 = blocks.pop()
                m1, w1, n1 = blocks.pop()
                blocks.append([(m1 * w1 + m2 * w2) / (w1 + w2), w1 + w2, n1 + n2])
        sizes = torch.tensor([b[2] for b in blocks], device=y.device)
        block = torch.repeat_interleave(torch.arange(len(blocks), device=y.device), sizes)
        total = y.new_zeros(len(blocks)).index_add_(0, block, weight)
        fit = y.new_zeros(len(blocks)).index_add_(0, block, weight * y) / total
        ctx.save_for_backward(y, weight, block, total, fit)
        return fit[block]

    @staticmethod
    @once_differentiable
    def backward(ctx, grad):
        y, weight, block, total, fit = ctx.saved_tensors
        pooled = (torch.zeros_like(total).index_add_(0, block, grad) / total)[block]
        return weight * pooled, (y - fit[block]) * pooled, None
