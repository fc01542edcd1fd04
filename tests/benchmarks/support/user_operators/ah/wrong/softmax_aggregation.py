import torch
from torch import nn


def _sum(x, index, n):
    return x.new_zeros(n, x.shape[1]).index_add(0, index, x)


class _SoftmaxAggr(torch.autograd.Function):
    @staticmethod
    def alpha(x, t, index, n):
        z = x * t
        top = z.new_full((n, z.shape[1]), float("-inf")).scatter_reduce(0, index[:, None].expand_as(z), z, "amax")
        e = (z - top.detach()[index]).exp()
        return e / _sum(e, index, n)[index]

    @staticmethod
    def forward(ctx, x, t, index, n):
        a = _SoftmaxAggr.alpha(x, t, index, n)
        ctx.save_for_backward(x, t, index)
        ctx.n = n
        return _sum(a * x, index, n)

    @staticmethod
    def backward(ctx, g):
        x, t, index = ctx.saved_tensors
        a = _SoftmaxAggr.alpha(x, t, index, ctx.n)
        y = _sum(a * x, index, ctx.n)
        ga = a * g[index]
        dev = x - y[index]
        gx = ga * (1 + t * dev)
        gt = (ga * x * dev).sum()
        return gx, gt, None, None


class SoftmaxAggregation(nn.Module):
    r"""The softmax aggregation operator with learnt temperatures

    .. math::
        \mathrm{softmax}(\mathcal{X}|t) = \sum_{\mathbf{x}_i\in\mathcal{X}}
        \frac{\exp(t\cdot\mathbf{x}_i)}{\sum_{\mathbf{x}_j\in\mathcal{X}}
        \exp(t\cdot\mathbf{x}_j)}\cdot\mathbf{x}_{i}.

    Args:
        channels (int): Number of channels, each with its own temperature.
        t (float, optional): Initial inverse temperature.
    """

    def __init__(self, channels: int, t: float = 1.0):
        super().__init__()
        self.init_t = t
        self.t = nn.Parameter(torch.empty(1, channels))
        self.reset_parameters()

    def reset_parameters(self):
        self.t.data.fill_(self.init_t)

    def forward(self, x: torch.Tensor, index: torch.Tensor, dim_size: int = None) -> torch.Tensor:
        if x.dim() != 2 or index.shape != x.shape[:1]:
            raise ValueError("expected x of shape (n, channels) and index of shape (n,)")
        if dim_size is None:
            dim_size = int(index.max()) + 1
        return _SoftmaxAggr.apply(x, self.t, index, dim_size)

    def __repr__(self) -> str:
        return f"{self.__class__.__name__}(channels={self.t.shape[1]})"
