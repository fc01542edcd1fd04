import torch

_ns = "".join(ch if ch.isalnum() else "_" for ch in "relaxed_" + __name__)


@torch.library.custom_op(f"{_ns}::binomial_logpmf", mutates_args=())
def binomial_logpmf(k: torch.Tensor, n: torch.Tensor, p: torch.Tensor) -> torch.Tensor:
    # binomial log pmf continued to real 0 <= k <= n; same shapes
    coef = torch.lgamma(n + 1) - torch.lgamma(k + 1) - torch.lgamma(n - k + 1)
    return coef + k * torch.log(p) + (n - k) * torch.log1p(-p)


@binomial_logpmf.register_fake
def _fake(k, n, p):
    return torch.empty_like(k)


def setup_context(ctx, inputs, output):
    ctx.save_for_backward(*inputs)


def backward(ctx, g):
    k, n, p = ctx.saved_tensors
    rest = torch.digamma(n - k + 1)
    gk = gn = gp = None
    if ctx.needs_input_grad[0]:
        gk = g * (rest - torch.digamma(k + 1) + torch.log(p) - torch.log1p(-p))
    if ctx.needs_input_grad[1]:
        gn = g * (torch.digamma(n + 1) - rest)
    if ctx.needs_input_grad[2]:
        gp = g * (k / p - (n - k) / (1 - p))
    return gk, gn, gp


binomial_logpmf.register_autograd(backward, setup_context=setup_context)
