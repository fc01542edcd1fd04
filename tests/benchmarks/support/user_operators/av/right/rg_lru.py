import torch
import torch.nn.functional as F
from torch import Tensor


class _RGLRU(torch.autograd.Function):
    C = 8.0

    @staticmethod
    def _coefs(x, r, i, lam):
        log_a = -_RGLRU.C * F.softplus(lam) * torch.sigmoid(r)
        return log_a, torch.exp(log_a), torch.sqrt(-torch.expm1(2 * log_a)), torch.sigmoid(i)

    @staticmethod
    def forward(ctx, x, r, i, lam, h0):
        _, a, m, gate = _RGLRU._coefs(x, r, i, lam)
        h, out = torch.zeros_like(x[:, 0]) if h0 is None else h0, []
        for t in range(x.size(1)):
            h = a[:, t] * h + m[:, t] * gate[:, t] * x[:, t]
            out.append(h)
        out = torch.stack(out, 1)
        ctx.save_for_backward(x, r, i, lam, h0, out)
        return out

    @staticmethod
    def backward(ctx, g):
        x, r, i, lam, h0, out = ctx.saved_tensors
        log_a, a, m, gate = _RGLRU._coefs(x, r, i, lam)
        first = torch.zeros_like(x[:, :1]) if h0 is None else h0.unsqueeze(1)
        prev = torch.cat([first, out[:, :-1]], 1)
        carry, dhs = torch.zeros_like(x[:, 0]), []
        for t in reversed(range(x.size(1))):
            dh = g[:, t] + carry
            dhs.append(dh)
            carry = dh * a[:, t]
        dh = torch.stack(dhs[::-1], 1)
        dx = dh * m * gate
        di = dh * m * x * gate * (1 - gate)
        dm = dh * gate * x
        dlog_a = dh * prev * a - dm * a * a / m
        s = torch.sigmoid(r)
        dr = dlog_a * -_RGLRU.C * F.softplus(lam) * s * (1 - s)
        dlam = (dlog_a * -_RGLRU.C * s).sum((0, 1)) * torch.sigmoid(lam)
        dh0 = None if h0 is None else carry
        return dx, dr, di, dlam, dh0


def rg_lru(x: Tensor, r: Tensor, i: Tensor, lam: Tensor, h0: Tensor | None = None) -> Tensor:
    """Griffin's real-gated linear recurrent unit. x, r, i (B, T, D) input and gate logits, lam (D,), h0 (B, D)"""
    return _RGLRU.apply(x, r, i, lam, h0)
