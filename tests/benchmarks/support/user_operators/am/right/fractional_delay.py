import torch
from torch import Tensor


def _tap(x: Tensor, at: Tensor) -> Tensor:
    n = x.shape[-1]
    return x.gather(-1, at.clamp(0, n - 1)) * ((at >= 0) & (at < n))


def _positions(x: Tensor, delay: Tensor):
    pos = torch.arange(x.shape[-1], dtype=x.dtype, device=x.device) - delay[:, None]
    low = pos.detach().floor()
    return low.long(), pos - low


@torch.library.custom_op("dspkit::frac_delay", mutates_args=())
def frac_delay(x: Tensor, delay: Tensor) -> Tensor:
    """Delay channel c of x (C, T) by delay[c] samples (linear interpolation, zeros outside)."""
    low, frac = _positions(x, delay)
    return (1 - frac) * _tap(x, low) + frac * _tap(x, low + 1)


@frac_delay.register_fake
def _(x, delay):
    return torch.empty_like(x)


def _setup(ctx, inputs, output):
    ctx.save_for_backward(*inputs)


def _backward(ctx, grad):
    x, delay = ctx.saved_tensors
    n = x.shape[-1]
    low, frac = _positions(x, delay)
    gx = torch.zeros_like(x)
    for at, share in ((low, 1 - frac), (low + 1, frac)):
        ok = (at >= 0) & (at < n)
        gx = gx.scatter_add(-1, at.clamp(0, n - 1), grad * share * ok)
    g_delay = (grad * (_tap(x, low) - _tap(x, low + 1))).sum(-1)
    return gx, g_delay


frac_delay.register_autograd(_backward, setup_context=_setup)
