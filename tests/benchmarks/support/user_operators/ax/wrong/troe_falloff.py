import math

import torch


def _broadening(log_pr, f_cent):
    shift = -0.4 - 0.67 * math.log10(f_cent)
    width = 0.75 - 1.27 * math.log10(f_cent)
    y = log_pr / math.log(10) + shift
    return y / (width - 0.14 * y), width, y


@torch.library.custom_op("torchkin::troe_falloff", mutates_args=())
def _troe(k_low: torch.Tensor, k_inf: torch.Tensor, conc: torch.Tensor, f_cent: float, form: str) -> torch.Tensor:
    pr = k_low * conc / k_inf
    rate = k_inf * pr / (1 + pr)
    if form == "troe":
        x, _, _ = _broadening(pr.log(), f_cent)
        rate = rate * torch.exp(math.log(f_cent) / (1 + x**2))
    return rate


@_troe.register_fake
def _(k_low, k_inf, conc, f_cent, form):
    return k_low * conc / k_inf


def _setup(ctx, inputs, output):
    k_low, k_inf, conc, ctx.f_cent, ctx.form = inputs
    ctx.save_for_backward(k_low, k_inf, conc, output)


def _backward(ctx, grad):
    k_low, k_inf, conc, rate = ctx.saved_tensors
    pr = k_low * conc / k_inf
    slope = 1 / (1 + pr)
    if ctx.form == "troe":
        x, width, y = _broadening(pr.log(), ctx.f_cent)
        d_x = width / (width - 0.14 * y) ** 2
        slope = slope - 2 * math.log(ctx.f_cent) * x * d_x / (1 + x**2) ** 2
    g = grad * rate
    g_low = (g * slope / k_low).sum_to_size(k_low.shape)
    g_inf = (g * (1 - slope) / k_inf).sum_to_size(k_inf.shape)
    g_conc = (g * slope / conc).sum_to_size(conc.shape)
    return g_low, g_inf, g_conc, None, None


_troe.register_autograd(_backward, setup_context=_setup)


def troe_falloff(k_low, k_inf, conc, f_cent=0.6, form="troe"):
    """Rate constant of a unimolecular reaction in the fall-off regime.

    Parameters
    ----------
    k_low, k_inf : Tensor
        Low- and high-pressure limits, positive, broadcastable.
    conc : Tensor
        Concentration of the bath gas, positive, broadcastable.
    f_cent : float
        Centre broadening factor, in (0, 1].
    form : {"troe", "lindemann"}
    """
    return torch.ops.torchkin.troe_falloff(k_low, k_inf, conc, f_cent, form)
