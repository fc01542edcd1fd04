import torch
from torch import Tensor


def _coefs(alpha: Tensor, delta: Tensor) -> tuple[Tensor, Tensor]:
    a = torch.sigmoid(alpha)
    return a, 1 - a * torch.sigmoid(delta)


def _states(x: Tensor, alpha: Tensor, delta: Tensor, beta: Tensor) -> Tensor:
    a, decay = _coefs(alpha, delta)
    h, out = torch.zeros_like(x[:, 0, :, None] * beta), []
    for t in range(x.size(1)):
        h = decay * h + a * beta * x[:, t, :, None]
        out.append(h)
    return torch.stack(out, 1)


@torch.library.custom_op("scans::damped_ema", mutates_args=())
def _damped_ema(x: Tensor, alpha: Tensor, delta: Tensor, beta: Tensor, eta: Tensor) -> Tensor:
    return torch.einsum("btdn,dn->btd", _states(x, alpha, delta, beta), eta)


def _setup(ctx, inputs, output):
    ctx.save_for_backward(*inputs)


def _backward(ctx, g: Tensor):
    x, alpha, delta, beta, eta = ctx.saved_tensors
    a, decay = _coefs(alpha, delta)
    h = _states(x, alpha, delta, beta)
    deta = torch.einsum("btd,btdn->dn", g, h)
    carry = torch.zeros_like(h[:, 0])
    dx, du, ddecay = [], 0, 0
    for t in reversed(range(x.size(1))):
        dh = carry + g[:, t, :, None] * eta
        dx.append((dh * a * beta).sum(-1))
        du = du + (dh * x[:, t, :, None]).sum(0)
        if t > 0:
            ddecay = ddecay + (dh * h[:, t]).sum(0)
        carry = dh * decay
    s = torch.sigmoid(delta)
    da = du * beta - ddecay * s
    return torch.stack(dx[::-1], 1), da * a * (1 - a), -ddecay * a * s * (1 - s), du * a, deta


_damped_ema.register_autograd(_backward, setup_context=_setup)


def damped_ema(x: Tensor, alpha: Tensor, delta: Tensor, beta: Tensor, eta: Tensor) -> Tensor:
    """MEGA's multi-dimensional damped EMA. x (B, T, D), T >= 2; alpha, delta (logits), beta, eta (D, N)"""
    return torch.ops.scans.damped_ema(x, alpha, delta, beta, eta)
