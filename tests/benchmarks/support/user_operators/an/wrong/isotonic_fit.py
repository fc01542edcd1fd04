import torch
from torch.autograd.function import once_differentiable


def _pav(x, w):
    blocks = []
    for v, c in zip(x.tolist(), w.tolist()):
        blocks.append([v, c, 1])
        while len(blocks) > 1 and blocks[-2][0] > blocks[-1][0]:
            v1, c1, n1 = blocks.pop()
            v0, c0, n0 = blocks.pop()
            blocks.append([(v0 * c0 + v1 * c1) / (c0 + c1), c0 + c1, n0 + n1])
    return blocks


class Isotonic(torch.autograd.Function):
    """Weighted increasing regression (pool adjacent violators). x (N,), w (N,) > 0, not differentiated."""

    @staticmethod
    def forward(ctx, x, w):
        blocks = _pav(x, w)
        label = torch.repeat_interleave(torch.arange(len(blocks)), torch.tensor([b[2] for b in blocks]))
        label = label.to(x.device)
        mass = x.new_zeros(len(blocks)).index_add_(0, label, w)
        fit = x.new_zeros(len(blocks)).index_add_(0, label, w * x) / mass
        ctx.save_for_backward(label, mass, w)
        return fit[label]

    @staticmethod
    @once_differentiable
    def backward(ctx, g):
        label, mass, w = ctx.saved_tensors
        pooled = torch.zeros_like(mass).index_add_(0, label, w * g)
        return (pooled / mass)[label], None
