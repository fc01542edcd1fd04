import torch
from torch import Tensor


@torch.library.custom_op("ah_seg_v2::logsumexp", mutates_args=())
def _seg_lse(x: Tensor, ends: Tensor, tau: float) -> Tensor:
    out, lo = [], 0
    for hi in ends.tolist():
        out.append(tau * torch.logsumexp(x[lo:hi] / tau, 0))
        lo = hi
    return torch.stack(out)


@_seg_lse.register_fake
def _(x, ends, tau):
    return x.new_empty(ends.shape[0], *x.shape[1:])


def _save(ctx, inputs, output):
    x, ends, tau = inputs
    ctx.save_for_backward(x, ends, output)
    ctx.tau = tau


def _grad(ctx, g):
    x, ends, out = ctx.saved_tensors
    row = torch.arange(x.shape[0], device=x.device)
    seg = torch.bucketize(row, ends, right=False)
    return g[seg] * torch.exp((x - out[seg]) / ctx.tau), None, None


_seg_lse.register_autograd(_grad, setup_context=_save)


def segment_logsumexp(x: Tensor, lengths: Tensor, tau: float = 1.0) -> Tensor:
    r"""Smooth maximum :math:`\tau \log \sum_i \exp(x_i / \tau)` over runs of rows.

    Args:
        x: :math:`(n, *)`
        lengths: :math:`(s,)`, positive, adding up to :math:`n`
        tau: temperature, positive

    Returns:
        :math:`(s, *)`
    """
    if tau <= 0:
        raise ValueError("tau must be positive")
    if int(lengths.min()) < 1 or int(lengths.sum()) != x.shape[0]:
        raise ValueError("lengths must be positive and add up to the number of rows")
    return _seg_lse(x, lengths.cumsum(0), float(tau))
