"""KL term of a VAE with free bits (Kingma et al., 2016)."""
import torch
from torch import Tensor


def _kl(mu: Tensor, logvar: Tensor) -> Tensor:
    return 0.5 * (mu * mu + logvar.exp() - 1 - logvar)


@torch.library.custom_op("vae_k::kl_free_bits", mutates_args=())
def _op(mu: Tensor, logvar: Tensor, free: float) -> Tensor:
    return _kl(mu, logvar).mean(0).clamp(min=free).sum()


@_op.register_fake
def _(mu, logvar, free):
    return mu.new_empty(())


def _setup(ctx, inputs, output):
    mu, logvar, free = inputs
    ctx.save_for_backward(mu, logvar)
    ctx.free = free


def _backward(ctx, grad):
    mu, logvar = ctx.saved_tensors
    n = mu.size(0)
    on = (_kl(mu, logvar).mean(0) > ctx.free).to(mu.dtype)
    g_mu = grad * on * mu / n
    g_logvar = grad * on * 0.5 * (logvar.exp() - 1) / n
    return g_mu, g_logvar, None


_op.register_autograd(_backward, setup_context=_setup)


def kl_free_bits(mu: Tensor, logvar: Tensor, free: float = 0.0) -> Tensor:
    """Sum over latents of max(free, batch mean of the KL to N(0, 1)).

    mu, logvar: (B, D); free >= 0 in nats per latent
    """
    assert mu.shape == logvar.shape and mu.dim() == 2
    return _op(mu, logvar, float(free))
