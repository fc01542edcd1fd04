import torch
from torch import Tensor


def _transmission(mu: Tensor, step: float) -> Tensor:
    """From the middle of each voxel to the detector, which lies before voxel 0."""
    return torch.exp(-step * (mu.cumsum(-1) - mu / 2))


@torch.library.custom_op("spect::attenuated_line", mutates_args=())
def _attenuated_line(activity: Tensor, mu: Tensor, step: float) -> Tensor:
    return step * (activity * _transmission(mu, step)).sum(-1)


@_attenuated_line.register_fake
def _(activity, mu, step):
    return activity.new_empty(activity.shape[:-1])


def _setup_context(ctx, inputs, output):
    activity, mu, step = inputs
    ctx.save_for_backward(activity, mu)
    ctx.step = step


def _backward(ctx, grad):
    activity, mu = ctx.saved_tensors
    step = ctx.step
    seen = _transmission(mu, step)
    emitted = activity * seen
    behind = emitted.flip(-1).cumsum(-1).flip(-1)
    grad_activity = step * grad[..., None] * seen
    grad_mu = -(step**2) * grad[..., None] * (behind + emitted / 2)
    return grad_activity, grad_mu, None


_attenuated_line.register_autograd(_backward, setup_context=_setup_context)


def spect_attenuated_line(activity: Tensor, mu: Tensor, step: float) -> Tensor:
    """Attenuated line integrals: activity and mu (..., voxels), ordered away from the detector -> (...)"""
    if activity.shape != mu.shape:
        raise ValueError("activity and mu must have the same shape")
    return torch.ops.spect.attenuated_line(activity, mu, step)
