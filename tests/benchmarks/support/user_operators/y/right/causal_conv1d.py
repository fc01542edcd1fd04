from typing import Optional

import torch
import torch.nn.functional as F


class CausalConv1d(torch.autograd.Function):
    """Depthwise causal convolution as in Mamba blocks, optionally with SiLU.

    x: (B, D, L), weight: (D, K), bias: (D,) or None, activation: None or "silu"
    """

    @staticmethod
    def forward(ctx, x, weight, bias=None, activation: Optional[str] = "silu"):
        if activation not in (None, "silu", "swish"):
            raise NotImplementedError(activation)
        ctx.save_for_backward(x, weight, bias)
        ctx.act = activation is not None
        z = _conv(x, weight, bias)
        return F.silu(z) if ctx.act else z

    @staticmethod
    def backward(ctx, dout):
        x, weight, bias = ctx.saved_tensors
        L, K = x.shape[-1], weight.shape[-1]
        dz = dout
        if ctx.act:
            z = _conv(x, weight, bias)
            s = torch.sigmoid(z)
            dz = dout * s * (1 + z * (1 - s))
        xp = F.pad(x, (K - 1, 0))
        dw = torch.stack([(dz * xp[..., i:i + L]).sum((0, 2)) for i in range(K)], -1)
        ahead = F.pad(dz, (0, K - 1))
        dx = sum(weight[:, i, None] * ahead[..., K - 1 - i:K - 1 - i + L] for i in range(K))
        db = dz.sum((0, 2)) if bias is not None else None
        return dx, dw, db, None


def _conv(x, weight, bias):
    L, K = x.shape[-1], weight.shape[-1]
    xp = F.pad(x, (K - 1, 0))
    z = sum(weight[:, i, None] * xp[..., i:i + L] for i in range(K))
    return z if bias is None else z + bias[:, None]
