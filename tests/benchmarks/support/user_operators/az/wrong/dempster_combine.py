import torch
from torch import Tensor


def _joint(a: Tensor, b: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """masses before normalisation and one minus the conflict, of (free, occupied, unknown)"""
    (fa, oa, ua), (fb, ob, ub) = a.unbind(-1), b.unbind(-1)
    free = fa * fb + fa * ub + ua * fb
    occupied = oa * ob + oa * ub + ua * ob
    agreed = 1 - fa * ob - oa * fb
    return torch.stack([free, occupied, ua * ub], -1), agreed[..., None], a


@torch.library.custom_op("occgrid::dempster", mutates_args=())
def _dempster(a: Tensor, b: Tensor) -> Tensor:
    joint, agreed, _ = _joint(a, b)
    return joint / agreed


@_dempster.register_fake
def _(a, b):
    return torch.empty_like(a)


def _setup_context(ctx, inputs, output):
    ctx.save_for_backward(*inputs)


def _one_side(gf, go, gu, g_agreed, other):
    f, o, u = other.unbind(-1)
    return torch.stack([
        gf * (f + u) - g_agreed * o,
        go * (o + u) - g_agreed * o,
        gf * f + go * o + gu * u,
    ], -1)


def _backward(ctx, grad):
    a, b = ctx.saved_tensors
    joint, agreed, _ = _joint(a, b)
    g_joint = grad / agreed
    g_agreed = -(grad * joint).sum(-1) / agreed[..., 0] ** 2
    gf, go, gu = g_joint.unbind(-1)
    return _one_side(gf, go, gu, g_agreed, b), _one_side(gf, go, gu, g_agreed, a)


_dempster.register_autograd(_backward, setup_context=_setup_context)


def dempster_combine(a: Tensor, b: Tensor) -> Tensor:
    """Dempster's rule for evidential occupancy cells, masses (..., 3) of free, occupied, unknown.

    Fully conflicting cells (conflict 1) are not allowed.
    """
    if a.shape != b.shape or a.size(-1) != 3:
        raise ValueError("masses must be (..., 3) and of one shape")
    return torch.ops.occgrid.dempster(a, b)
