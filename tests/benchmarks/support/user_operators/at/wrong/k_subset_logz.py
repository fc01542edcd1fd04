import torch
from torch.autograd import Function


def _esp(x, k):
    # elementary symmetric polynomial of order k over the last dimension
    e = [torch.ones_like(x[..., 0])] + [torch.zeros_like(x[..., 0]) for _ in range(k)]
    for xi in x.unbind(-1):
        e = [e[0]] + [e[j] + xi * e[j - 1] for j in range(1, k + 1)]
    return e[k]


class KSubsetLogZ(Function):
    """log of the sum of exp(theta_S) over subsets S with k of n elements. theta (..., n), 1 <= k <= n
    The gradient is the marginal probability of every element."""

    @staticmethod
    def forward(ctx, theta, k):
        ctx.k = k
        top = theta.amax(-1, keepdim=True)
        out = torch.log(_esp(torch.exp(theta - top), k)) + k * top.squeeze(-1)
        ctx.save_for_backward(theta)
        return out

    @staticmethod
    def backward(ctx, grad):
        theta, = ctx.saved_tensors
        x = torch.exp(theta - theta.detach().amax(-1, keepdim=True))
        z = _esp(x, ctx.k)
        marg = []
        for i in range(theta.size(-1)):
            rest = torch.cat([x[..., :i], x[..., i:]], -1)
            marg.append(x[..., i] * _esp(rest, ctx.k - 1) / z)
        return grad.unsqueeze(-1) * torch.stack(marg, -1), None


def k_subset_logz(theta, k):
    return KSubsetLogZ.apply(theta, k)
