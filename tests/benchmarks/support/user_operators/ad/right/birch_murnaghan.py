from typing import Tuple
import torch
from torch import Tensor


@torch.library.custom_op("eos::birch_murnaghan", mutates_args=())
def birch_murnaghan(volume: Tensor, e0: Tensor, v0: Tensor, b0: Tensor, bp: Tensor) -> Tuple[Tensor, Tensor]:
    """Third-order Birch-Murnaghan equation of state: energy and pressure at `volume` (n,).

    e0, v0, b0, bp are 0-dim; units must agree (b0 in energy per volume).
    """
    x = (v0 / volume) ** (2 / 3)
    f = x - 1
    energy = e0 + 9 * v0 * b0 / 16 * (f ** 3 * bp + f ** 2 * (6 - 4 * x))
    pressure = 1.5 * b0 * (x ** 3.5 - x ** 2.5) * (1 + 0.75 * (bp - 4) * f)
    return energy, pressure


def _setup(ctx, inputs, output):
    volume, e0, v0, b0, bp = inputs
    ctx.save_for_backward(volume, v0, b0, bp, output[1])


def _backward(ctx, ge, gp):
    volume, v0, b0, bp, pressure = ctx.saved_tensors
    x = (v0 / volume) ** (2 / 3)
    f = x - 1
    shape = f ** 3 * bp + f ** 2 * (6 - 4 * x)
    k = 1 + 0.75 * (bp - 4) * f
    dx = gp * 1.5 * b0 * ((3.5 * x ** 2.5 - 2.5 * x ** 1.5) * k + (x ** 3.5 - x ** 2.5) * 0.75 * (bp - 4))
    # dE/dV = -P
    g_vol = -ge * pressure - dx * 2 / 3 * x / volume
    dshape = 3 * f ** 2 * bp + 2 * f * (6 - 4 * x) - 4 * f ** 2
    ge_x = ge * 9 * v0 * b0 / 16 * dshape
    g_v0 = (ge * 9 * b0 / 16 * shape).sum() + ((ge_x + dx) * 2 / 3 * x / v0).sum()
    g_b0 = (ge * 9 * v0 / 16 * shape).sum() + (gp * pressure).sum() / b0
    g_bp = (ge * 9 * v0 * b0 / 16 * f ** 3).sum() + (gp * 1.5 * b0 * (x ** 3.5 - x ** 2.5) * 0.75 * f).sum()
    return g_vol, ge.sum(), g_v0, g_b0, g_bp


birch_murnaghan.register_autograd(_backward, setup_context=_setup)
