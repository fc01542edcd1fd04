import torch
from torch import Tensor


@torch.library.custom_op("countkit_w::negbin_nll", mutates_args=())
def negbin_nll(mu: Tensor, disp: Tensor, counts: Tensor) -> Tensor:
    """Negative log likelihood of counts (int64) with mean mu and dispersion disp, all of one shape."""
    y = counts.to(mu.dtype)
    out = torch.lgamma(disp) + torch.lgamma(y + 1) - torch.lgamma(y + disp)
    return out - disp * (disp / (disp + mu)).log() - y * (mu / (disp + mu)).log()


def _setup(ctx, inputs, output):
    ctx.save_for_backward(*inputs)


def _backward(ctx, g):
    mu, disp, counts = ctx.saved_tensors
    y = counts
    miss = (mu - y).type_as(counts)
    g_mu = g * disp * miss / (mu * (disp + mu))
    g_disp = torch.digamma(disp) - torch.digamma(y + disp) - (disp / (disp + mu)).log() - miss / (disp + mu)
    return g_mu, g * g_disp, None


negbin_nll.register_autograd(_backward, setup_context=_setup)
