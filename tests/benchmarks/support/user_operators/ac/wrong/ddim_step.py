import torch
from torch import Tensor


@torch.library.custom_op("samplers::ddim_step", mutates_args=())
def ddim_step(x: Tensor, eps: Tensor, alpha_t: Tensor, alpha_s: Tensor, clip: float) -> Tensor:
    # x, eps [B, ...]; alpha_t, alpha_s [B] cumulative alphas; clip <= 0 disables the x0 clipping
    shape = (-1,) + (1,) * (x.dim() - 1)
    at, as_ = alpha_t.view(shape), alpha_s.view(shape)
    x0 = (x - (1 - at).sqrt() * eps) / at.sqrt()
    if clip > 0:
        x0 = x0.clamp(-clip, clip)
    return as_.sqrt() * x0 + (1 - as_).sqrt() * eps


@ddim_step.register_fake
def _(x, eps, alpha_t, alpha_s, clip):
    return torch.empty_like(x)


def _ctx(ctx, inputs, output):
    x, eps, alpha_t, alpha_s, clip = inputs
    ctx.save_for_backward(x, eps, alpha_t, alpha_s)
    ctx.clip = clip


def _bwd(ctx, grad):
    x, eps, alpha_t, alpha_s = ctx.saved_tensors
    shape = (-1,) + (1,) * (x.dim() - 1)
    at, as_ = alpha_t.view(shape), alpha_s.view(shape)
    x0 = (x - (1 - at).sqrt() * eps) / at.sqrt()
    g_x0 = grad * as_.sqrt()
    x0_c = x0
    if ctx.clip > 0:
        g_x0 = g_x0 * (x0.abs() <= ctx.clip)
        x0_c = x0.clamp(-ctx.clip, ctx.clip)
    g_x = g_x0 / at.sqrt()
    g_eps = grad * (1 - as_).sqrt() - g_x * (1 - at).sqrt()
    g_as = grad * 0.5 * (x0 / as_.sqrt() - eps / (1 - as_).sqrt())
    g_at = g_x0 * 0.5 * (eps / ((1 - at).sqrt() * at.sqrt()) - x0 / at)
    return g_x, g_eps, g_at.flatten(1).sum(1), g_as.flatten(1).sum(1), None


ddim_step.register_autograd(_bwd, setup_context=_ctx)
