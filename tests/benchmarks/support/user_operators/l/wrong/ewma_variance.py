# RiskMetrics volatility
import torch
from torch import Tensor


@torch.library.custom_op("riskmetrics::ewma_var", mutates_args=())
def ewma_var(r: Tensor, lam: float) -> Tensor:
    v = r[..., 0] ** 2
    out = [v]
    for t in range(1, r.shape[-1]):
        v = lam * v + (1 - lam) * r[..., t] ** 2
        out.append(v)
    return torch.stack(out, -1)


@ewma_var.register_fake
def _(r, lam):
    return torch.empty_like(r)


def setup_context(ctx, inputs, output):
    r, lam = inputs
    ctx.save_for_backward(r)
    ctx.lam = lam


def backward(ctx, g):
    r, = ctx.saved_tensors
    lam = ctx.lam
    d = torch.zeros_like(g[..., 0])
    adj = []
    for t in range(r.shape[-1] - 1, -1, -1):
        d = g[..., t] + lam * d
        adj.append(d)
    adj = torch.stack(adj[::-1], -1)
    gain = torch.full_like(r, 1 - lam)
    return 2 * r * gain * adj, None


ewma_var.register_autograd(backward, setup_context=setup_context)


def ewma_variance(returns: Tensor, lam: float = 0.94) -> Tensor:
    """v_t = lam v_{t-1} + (1 - lam) r_t^2 over the last axis, v_0 = r_0^2."""
    if not 0 < lam < 1:
        raise ValueError("lam must be in (0, 1)")
    return ewma_var(returns, lam)
