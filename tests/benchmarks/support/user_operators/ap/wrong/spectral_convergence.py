import torch
from torch import Tensor


@torch.library.custom_op("vocoder_losses::spectral_convergence", mutates_args=())
def _spectral_convergence(est: Tensor, ref: Tensor) -> Tensor:
    return torch.linalg.vector_norm(ref - est, dim=(1, 2)) / torch.linalg.vector_norm(ref, dim=(1, 2))


@_spectral_convergence.register_fake
def _(est, ref):
    return est.new_empty(est.shape[0])


def _setup(ctx, inputs, output):
    est, ref = inputs
    ctx.save_for_backward(est, ref)


def _backward(ctx, grad):
    est, ref = ctx.saved_tensors
    diff = ref - est
    dn = torch.linalg.vector_norm(diff, dim=(1, 2), keepdim=True)
    rn = torch.linalg.vector_norm(ref, dim=(1, 2), keepdim=True)
    g = grad[:, None, None] / rn
    unit = diff / dn
    return -g * unit, None


_spectral_convergence.register_autograd(_backward, setup_context=_setup)


def spectral_convergence(est: Tensor, ref: Tensor) -> Tensor:
    """|ref - est|_F / |ref|_F per item; est, ref: (B, F, T) magnitudes"""
    return torch.ops.vocoder_losses.spectral_convergence(est, ref)
