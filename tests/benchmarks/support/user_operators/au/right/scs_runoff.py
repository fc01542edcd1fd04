import torch
from torch import Tensor


@torch.library.custom_op("basin::scs_runoff", mutates_args=())
def _scs(rain: Tensor, cn: Tensor, ratio: float) -> Tensor:
    s = 25400 / cn - 254
    e = (rain - ratio * s).clamp(min=0)
    return e * e / (e + s)


def _setup(ctx, inputs, output):
    rain, cn, ctx.ratio = inputs
    ctx.save_for_backward(rain, cn)


def _backward(ctx, g):
    rain, cn = ctx.saved_tensors
    s = 25400 / cn - 254
    wet = rain > ctx.ratio * s
    e = torch.where(wet, rain - ctx.ratio * s, torch.zeros_like(rain))
    d_e = wet * (e * e + 2 * e * s) / (e + s) ** 2
    d_s = -e * e / (e + s) ** 2 - ctx.ratio * d_e
    d_cn = g * d_s * (-25400 / cn**2)
    return g * d_e, d_cn.sum_to_size(cn.shape), None


_scs.register_autograd(_backward, setup_context=_setup)


def scs_runoff(rain, cn, ratio=0.2):
    """SCS curve-number runoff [mm].

    rain (T, cells) [mm] >= 0, cn (cells,) in (0, 100), ratio of initial abstraction to storage.
    """
    return torch.ops.basin.scs_runoff(rain, cn, ratio)
