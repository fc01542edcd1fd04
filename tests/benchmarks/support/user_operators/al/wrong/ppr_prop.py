import torch
from torch import nn
from torch.autograd.function import once_differentiable


def _spmm(weight, to, frm, z):
    return torch.zeros_like(z).index_add_(0, to, weight.unsqueeze(1) * z[frm])


class _Propagate(torch.autograd.Function):
    @staticmethod
    def forward(ctx, h, alpha, src, dst, weight, steps):
        mixed, z = [], h
        for _ in range(steps):
            az = _spmm(weight, dst, src, z)
            mixed.append(h - az)
            z = (1 - alpha) * az + alpha * h
        ctx.mixed = mixed
        ctx.save_for_backward(alpha, src, dst, weight)
        return z.clone()

    @staticmethod
    @once_differentiable
    def backward(ctx, grad):
        alpha, src, dst, weight = ctx.saved_tensors
        d_h, d_alpha = torch.zeros_like(grad), torch.zeros_like(alpha)
        for diff in reversed(ctx.mixed):
            d_alpha += (grad * diff).sum()
            d_h += alpha * grad
            grad = (1 - alpha) * _spmm(weight, dst, src, grad)
        return d_h + grad, d_alpha, None, None, None, None


class PersonalizedPropagation(nn.Module):
    """Predict-then-propagate with a learnable teleport probability.

    Args:
        steps (int): power iterations
        alpha (float): initial teleport probability

    Shapes: h (N, F), edge_index (2, E) with rows source and target. Messages are averaged over the
    incoming edges of each node.
    """

    def __init__(self, steps=10, alpha=0.1):
        super().__init__()
        self.steps = steps
        self.alpha = nn.Parameter(torch.tensor(float(alpha)))

    def forward(self, h, edge_index):
        src, dst = edge_index
        deg = torch.bincount(dst, minlength=h.size(0)).to(h.dtype)
        return _Propagate.apply(h, self.alpha, src, dst, 1 / deg[dst], self.steps)
